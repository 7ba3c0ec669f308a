// Finds the console's files. This file is separate from `dist` so that `dist` contains no `import.meta`, which CommonJS
// bundles and test runners that compile to CommonJS do not support.
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

/** Path of the folder with the console's own files. */
export const PAGES = fileURLToPath(new URL('./pages/', import.meta.url));

/** Resolves a module of another package to its path. */
export const locate = createRequire(import.meta.url).resolve;
