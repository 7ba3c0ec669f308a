import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/**
 * Writes the code blocks of a page that name a file (```` ```ts file=orders.ts ````) into a folder.
 *
 * @param wanted which files to write. Default: all.
 * @returns the names of the files that were written.
 */
export async function writeDocumentedCode(
  page: string,
  folder: string,
  wanted: (name: string) => boolean = () => true,
): Promise<string[]> {
  const text = await readFile(page, 'utf8');
  const blocks = [...text.matchAll(/^```\w+ file=(\S+)\n(.*?)^```/gms)]
    .map(([, name, code]) => ({ name: name!, code: code! }))
    .filter(({ name }) => wanted(name));
  for (const { name, code } of blocks) {
    const file = join(folder, name);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, code);
  }
  return blocks.map(({ name }) => name);
}
