import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { readCodeBlocks } from './code-blocks.ts';

/**
 * Writes the code blocks of a page that name a file (```` ```ts file=orders.ts ````) into a folder.
 *
 * @param wanted returns whether to write the file. Default: all files are written.
 * @returns the names of the files that were written.
 */
export async function writeDocumentedCode(
  page: string,
  folder: string,
  wanted: (name: string) => boolean = () => true,
): Promise<string[]> {
  const names: string[] = [];
  for (const { attributes, code } of await readCodeBlocks(page)) {
    const name = attributes.get('file');
    if (name === undefined || !wanted(name)) continue;
    const file = join(folder, name);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, code);
    names.push(name);
  }
  return names;
}
