// Knows where the console's files are. It is separate from `dist` so that `dist` needs no `import.meta`, which neither
// a CommonJS bundle nor a test runner that compiles to CommonJS has. Only the console loads it.
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

/** Path of the folder with the console's own files. */
export const PAGES = fileURLToPath(new URL('./pages/', import.meta.url));

/** Path of a module that the console serves to browsers. */
export const locate = createRequire(import.meta.url).resolve;
