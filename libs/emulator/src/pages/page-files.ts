import { readdir, readFile } from 'node:fs/promises';
import { messageOf } from '../emulator-errors.js';

export interface PageFile {
  readonly type: string;
  readonly body: Buffer;
}

/** The style sheets of every page, in the order in which they are loaded. */
export const STYLE_SHEETS: readonly string[] = [
  'base.css',
  'layout.css',
  'controls.css',
  'lists.css',
  'payments.css',
  'delivery-log.css',
  'faults.css',
  'credentials.css',
  'checkout.css',
];

/**
 * The folder of the emulator's own page files. The folder is next to `src/` in the repository, and next to `dist/` in
 * the installed package.
 */
const OWN_FOLDER = new URL('../../pages/', import.meta.url);

/** Libraries that the pages import by name, and the file names under which they are served. */
const LIBRARIES = {
  preact: 'preact.js',
  'preact/hooks': 'preact-hooks.js',
  htm: 'htm.js',
  'htm/preact': 'htm-preact.js',
};

export const FILES_PATH = '/emulator/pages';

export const IMPORT_MAP = JSON.stringify({
  imports: Object.fromEntries(
    Object.entries(LIBRARIES).map(([name, file]) => [name, `${FILES_PATH}/${file}`]),
  ),
});

/**
 * Reads all files that the pages load. The keys of the result are the names under which the emulator serves the files.
 * The emulator calls this function once, when it starts, and serves no other file.
 *
 * @throws Error that names what is missing; the emulator does not start with incomplete pages
 */
export async function readPageFiles(
  folder: URL = OWN_FOLDER,
  locate: (library: string) => string = (library) => import.meta.resolve(library),
): Promise<ReadonlyMap<string, PageFile>> {
  const own = await orReinstall('the folder of the pages', () => readdir(folder));
  const sources = [
    ...own
      .filter((file) => /\.(?:css|js)$/.test(file))
      .map((file) => [file, (): URL => new URL(file, folder)] as const),
    ...Object.entries(LIBRARIES).map(
      ([library, file]) => [file, (): URL => new URL(locate(library))] as const,
    ),
  ];
  return new Map(
    await Promise.all(
      sources.map(async ([file, source]): Promise<[string, PageFile]> => {
        const type = file.endsWith('.css') ? 'text/css' : 'text/javascript';
        const body = await orReinstall(`the page file ${file}`, async () => readFile(source()));
        return [file, { type: `${type}; charset=utf-8`, body }];
      }),
    ),
  );
}

async function orReinstall<T>(what: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw new Error(`${what} cannot be read (${messageOf(error)}); reinstall payments-emulator`, {
      cause: error,
    });
  }
}
