import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Replaces a package with one that throws when it is imported. Removing the package would not be enough, because Node also
 * searches the parent folders.
 */
export class Trap {
  readonly #folder: string;
  readonly #backup: string;

  constructor(folder: string) {
    this.#folder = folder;
    this.#backup = `${folder}.backup`;
  }

  async set(): Promise<void> {
    if (existsSync(this.#folder)) await rename(this.#folder, this.#backup);
    await mkdir(this.#folder, { recursive: true });
    await writeFile(join(this.#folder, 'package.json'), '{ "main": "index.js" }');
    await writeFile(join(this.#folder, 'index.js'), 'throw new Error("needed " + __dirname);');
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
    if (existsSync(this.#backup)) await rename(this.#backup, this.#folder);
  }
}
