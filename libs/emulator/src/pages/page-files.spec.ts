import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readPageFiles } from './page-files.js';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pages-'));
  await cp(new URL('../../pages/', import.meta.url), folder, { recursive: true });
});
afterEach(() => rm(folder, { recursive: true }));

const url = (): URL => pathToFileURL(`${folder}/`);

describe('readPageFiles', () => {
  it('readPageFiles() reads the files of the pages, and the files of the libraries that the pages import', async () => {
    const files = await readPageFiles(url());
    expect(files.get('base.css')?.type).toBe('text/css; charset=utf-8');
    expect(String(files.get('preact.js')?.body)).toContain('export');
  });

  it('readPageFiles() throws an error that names the fix if the folder is missing', async () => {
    await expect(readPageFiles(new URL('missing/', url()))).rejects.toThrow(
      /^the folder of the pages cannot be read \(ENOENT.*\); reinstall payments-emulator$/,
    );
  });

  it('readPageFiles() throws an error that names a missing library', async () => {
    const locate = (library: string): string => {
      if (library === 'htm') throw new Error("Cannot find package 'htm'");
      return import.meta.resolve(library);
    };
    await expect(readPageFiles(url(), locate)).rejects.toThrow(
      "the page file htm.js cannot be read (Cannot find package 'htm')",
    );
  });
});
