import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Stands where a package is installed, or would be, and throws when it is imported. To take the package away
 * would not do: Node would go on to look for it in the folders above.
 */
export class Trap {
  readonly #folder: string;
  readonly #aside: string;

  constructor(folder: string) {
    this.#folder = folder;
    this.#aside = `${folder}.aside`;
  }

  async set(): Promise<void> {
    if (existsSync(this.#folder)) await rename(this.#folder, this.#aside);
    await mkdir(this.#folder, { recursive: true });
    await writeFile(join(this.#folder, 'package.json'), '{ "main": "index.js" }');
    await writeFile(join(this.#folder, 'index.js'), 'throw new Error("needed " + __dirname);');
  }

  async lift(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
    if (existsSync(this.#aside)) await rename(this.#aside, this.#folder);
  }
}
