import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readPageFiles } from './page.files.js';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pages-'));
  await cp(new URL('../../pages/', import.meta.url), folder, { recursive: true });
});
afterEach(() => rm(folder, { recursive: true }));

const url = (): URL => pathToFileURL(`${folder}/`);

describe('readPageFiles', () => {
  it("reads the pages' own files, and those of the libraries they import", async () => {
    const files = await readPageFiles(url());
    expect(files.get('style.css')?.type).toBe('text/css; charset=utf-8');
    expect(String(files.get('preact.js')?.body)).toContain('export');
  });

  it('names the file that is missing, and the mend', async () => {
    await rm(join(folder, 'faults.js'));
    await expect(readPageFiles(url())).rejects.toThrow(
      /^the page file faults\.js can not be read \(ENOENT.*install payments-emulator anew$/,
    );
  });

  it('names the library that is missing', async () => {
    const locate = (library: string): string => {
      if (library === 'htm') throw new Error("Cannot find package 'htm'");
      return import.meta.resolve(library);
    };
    await expect(readPageFiles(url(), locate)).rejects.toThrow(
      "the page file htm.js can not be read (Cannot find package 'htm')",
    );
  });
});
