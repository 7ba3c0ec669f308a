import { readFile } from 'node:fs/promises';
import { messageOf } from '../emulator.errors.js';

/** A file a page loads, as it is sent. */
export interface PageFile {
  readonly type: string;
  readonly body: Buffer;
}

/** The emulator's own: `pages/` beside `src/`, and so beside `dist/` in the installed package. */
const OWN_FOLDER = new URL('../../pages/', import.meta.url);
const OWN = [
  'style.css',
  'connection.js',
  'control.js',
  'credentials.js',
  'deliveries.js',
  'delivery.js',
  'fault.catalogue.js',
  'fault.switch.js',
  'faults.js',
  'moment.js',
  'server.js',
  'stk.js',
  'transactions.js',
];

/** What the pages import by name, and the file each is served as. */
const LIBRARIES = {
  preact: 'preact.js',
  'preact/hooks': 'preact-hooks.js',
  htm: 'htm.js',
  'htm/preact': 'htm-preact.js',
};

/** Where the pages' files are served. */
export const FILES_PATH = '/emulator/pages';

/** The import map of every page with a script. */
export const IMPORT_MAP = JSON.stringify({
  imports: Object.fromEntries(
    Object.entries(LIBRARIES).map(([name, file]) => [name, `${FILES_PATH}/${file}`]),
  ),
});

/**
 * Every file the pages load, by the name it is served under, read once: what is not in here is not
 * served.
 *
 * @throws Error naming the file that is missing: an emulator that could only show empty pages does
 * not start.
 */
export async function readPageFiles(
  folder: URL = OWN_FOLDER,
  locate: (library: string) => string = (library) => import.meta.resolve(library),
): Promise<ReadonlyMap<string, PageFile>> {
  const sources = [
    ...OWN.map((file) => [file, (): URL => new URL(file, folder)] as const),
    ...Object.entries(LIBRARIES).map(
      ([library, file]) => [file, (): URL => new URL(locate(library))] as const,
    ),
  ];
  return new Map(
    await Promise.all(
      sources.map(async ([file, source]): Promise<[string, PageFile]> => {
        const type = file.endsWith('.css') ? 'text/css' : 'text/javascript';
        return [file, { type: `${type}; charset=utf-8`, body: await read(file, source) }];
      }),
    ),
  );
}

async function read(file: string, source: () => URL): Promise<Buffer> {
  try {
    return await readFile(source());
  } catch (error) {
    throw new Error(
      `the page file ${file} can not be read (${messageOf(error)}); install payments-emulator anew`,
      { cause: error },
    );
  }
}
