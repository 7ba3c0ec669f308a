import { cp, mkdir, readdir, readFile, readlink, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import type { Mutant } from './mutant.ts';
import { mutate } from './mutant.ts';

const LEFT_OUT = new Set(['node_modules', '.git']);

/**
 * A copy of the repository in another folder. The copy links the installed packages of the original. The copy has its
 * own packages of the workspace, so that specs run the code of the copy.
 */
export class WorkspaceCopy {
  /** The folder of the copy. */
  readonly root: string;

  private constructor(root: string) {
    this.root = root;
  }

  /** @param folder an empty folder outside the repository */
  static async create(original: string, folder: string): Promise<WorkspaceCopy> {
    const modules: string[] = [];
    await cp(original, folder, {
      recursive: true,
      preserveTimestamps: true,
      filter: (path) => {
        if (basename(path) === 'node_modules') modules.push(path);
        return !LEFT_OUT.has(basename(path));
      },
    });
    for (const path of modules) await linkModules(path, join(folder, relative(original, path)));
    return new WorkspaceCopy(folder);
  }

  /**
   * Runs `work` while the mutant is in the copy, and then restores the file.
   *
   * @throws Error if the mutant no longer applies.
   */
  async with<T>(mutant: Mutant, work: () => Promise<T>): Promise<T> {
    const path = join(this.root, mutant.file);
    const source = await readFile(path, 'utf8');
    await writeFile(path, mutate(source, mutant));
    try {
      return await work();
    } finally {
      await writeFile(path, source);
    }
  }
}

/** Links each installed package. A relative link (a package of the workspace) stays relative and leads into the copy. */
async function linkModules(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  for (const entry of await readdir(from, { withFileTypes: true })) {
    // The copy has its own caches of tools.
    if (entry.name === '.cache') continue;
    const path = join(from, entry.name);
    const target = entry.isSymbolicLink() ? await readlink(path) : path;
    await mkdir(dirname(join(to, entry.name)), { recursive: true });
    await symlink(target, join(to, entry.name));
  }
}
