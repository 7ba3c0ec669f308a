import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { consoleInvalid } from './console-options.js';

export interface ConsoleAsset {
  readonly type: string;
  /** The value of the header `ETag`, which is a hash of the content. */
  readonly etag: string;
  readonly text: string;
}

/** The HTML of the console page for one base address, and its Content-Security-Policy. */
export interface ConsolePageText {
  readonly html: string;
  readonly policy: string;
}

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8',
};

/**
 * Files of other packages that the page loads. `bare` is the module name that the page imports, and `asset` is the file
 * name in the URL. `file` is the name of the file on disk. The file is in the same folder as the main file of the
 * module `found`.
 */
const LIBRARIES = [
  { bare: 'preact', asset: 'preact.mjs', found: 'preact', file: 'preact.mjs' },
  { bare: 'preact/hooks', asset: 'hooks.mjs', found: 'preact/hooks', file: 'hooks.mjs' },
  { bare: 'htm', asset: 'htm.mjs', found: 'htm', file: 'htm.mjs' },
  { bare: 'htm/preact', asset: 'htm-preact.mjs', found: 'htm/preact', file: 'index.mjs' },
  { bare: 'uplot', asset: 'uPlot.esm.js', found: 'uplot', file: 'uPlot.esm.js' },
  { bare: null, asset: 'uPlot.min.css', found: 'uplot', file: 'uPlot.min.css' },
] as const;

const TEMPLATE = 'console.html';

/**
 * The files of the console page. All files are read when the application boots, so that no request reads from the disk.
 */
export class ConsoleAssets {
  readonly #assets: ReadonlyMap<string, ConsoleAsset>;
  readonly #template: string;

  /** @throws PaymentsError `options_invalid` if a file is missing. */
  static async load(): Promise<ConsoleAssets> {
    // A bundler that includes this module does not copy the folder of the pages.
    const files = await import('../pages.js').catch(() => missing('the folder of the pages'));
    return new ConsoleAssets(files.PAGES, files.locate);
  }

  private constructor(pages: string, locate: (specifier: string) => string) {
    const own = read('the folder of the pages', () => readdirSync(pages))
      .filter((name) => /^[\w.-]+\.(?:js|css|svg)$/.test(name))
      .map((name) => [name, asset(name, () => join(pages, name))] as const);
    const foreign = LIBRARIES.map(
      ({ asset: name, found, file }) =>
        [name, asset(name, () => join(dirname(locate(found)), file))] as const,
    );
    this.#assets = new Map([...own, ...foreign]);
    const template = read(TEMPLATE, () => readFileSync(join(pages, TEMPLATE), 'utf8'));
    // Comments are for developers of the page.
    this.#template = template.replaceAll(/<!--.*?-->\s*/gs, '');
  }

  find(name: string): ConsoleAsset | undefined {
    return this.#assets.get(name);
  }

  /**
   * Returns the console page. The browser loads the files of the page from addresses below `base`. If the page's
   * address ends with a slash, `base` is `./`. Otherwise, `base` is `./`, the last part of the address and a slash.
   */
  page(base: string): ConsolePageText {
    const libraries = LIBRARIES.flatMap(({ bare, asset: name }) =>
      bare === null ? [] : [[bare, `${base}assets/${name}`]],
    );
    const importMap = JSON.stringify({ imports: Object.fromEntries(libraries) });
    const html = this.#template.replaceAll(/%(BASE|IMPORTMAP)%/g, (_, name) =>
      name === 'BASE' ? base : importMap,
    );
    return { html, policy: pagePolicy(importMap) };
  }
}

function asset(name: string, path: () => string): ConsoleAsset {
  const text = read(name, () => readFileSync(path(), 'utf8'));
  const hash = createHash('sha256').update(text).digest('base64url');
  return { type: TYPES[extname(name)]!, etag: `"${hash}"`, text };
}

function read<T>(name: string, from: () => T): T {
  try {
    return from();
  } catch {
    return missing(name);
  }
}

function missing(name: string): never {
  throw consoleInvalid(
    `${name} cannot be read. If the installation is not complete, install nestjs-payments-console again. If a bundler ` +
      'left the files out, exclude nestjs-payments-console from the bundle, and deploy the package and its dependencies ' +
      'in node_modules.',
  );
}

/** Returns a Content-Security-Policy that lets the page load its own files and one inline script, the import map. */
function pagePolicy(importMap: string): string {
  const hash = createHash('sha256').update(importMap).digest('base64');
  return [
    "default-src 'none'",
    `script-src 'self' 'sha256-${hash}'`,
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}
