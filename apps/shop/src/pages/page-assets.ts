import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A script, style sheet or picture of the pages. */
export interface Asset {
  readonly type: string;
  readonly body: Buffer;
  /** Hash of the content. */
  readonly etag: string;
}

const PAGES = new URL('../../pages/', import.meta.url);

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8',
};

/** The packages that the scripts of the pages import by name, and the name of each package's asset. */
const PACKAGES = {
  preact: 'preact.js',
  'preact/hooks': 'preact-hooks.js',
  htm: 'htm.js',
  'htm/preact': 'htm-preact.js',
} as const;

/** The import map of every page. */
export const IMPORT_MAP = JSON.stringify({
  imports: Object.fromEntries(
    Object.entries(PACKAGES).map(([name, file]) => [name, `/assets/${file}`]),
  ),
});

/**
 * The content security policy of the pages, which load and run only files of the shop. The import map is the only
 * inline script, so the policy contains the hash of the import map.
 */
export const PAGE_POLICY = [
  "default-src 'none'",
  `script-src 'self' 'sha256-${createHash('sha256').update(IMPORT_MAP).digest('base64')}'`,
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Reads all assets. The shop calls this function once, so that no request reads a file. */
export function readAssets(): ReadonlyMap<string, Asset> {
  const files = readdirSync(PAGES)
    .filter((name) => extname(name) in TYPES)
    .map((name) => [name, toAsset(name, new URL(name, PAGES))] as const);
  const packages = Object.entries(PACKAGES).map(
    ([name, file]) => [file, toAsset(file, import.meta.resolve(name))] as const,
  );
  return new Map([...files, ...packages]);
}

function toAsset(name: string, url: URL | string): Asset {
  const body = readFileSync(fileURLToPath(url));
  const etag = `"${createHash('sha256').update(body).digest('base64url')}"`;
  return { type: TYPES[extname(name)]!, body, etag };
}
