import { cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { npm, succeed } from '../support/processes/run-command.ts';
import { compileHandling, handlesEvent } from './handling-application.ts';
import type { PackedPackage } from './packed-package.ts';

const CONFIGURATIONS = join(import.meta.dirname, 'fixtures/bundlers');
/** Location of a warning in a file of the package, as webpack and esbuild print it. */
const WARNING = /^(?:WARNING in |\s+)\S*node_modules\/nestjs-payments\/\S+:?\s?\d+:\d+/m;
const PACKAGE_TYPES = { esm: 'module', commonjs: 'commonjs' };

/** One way to bundle an application. */
export interface Bundling {
  /** Name in the titles of checks, for example `esbuild, ESM, self-contained`. */
  readonly name: string;
  /** Module format of the compiled application and of its bundle. */
  readonly format: keyof typeof PACKAGE_TYPES;
  /** Whether the bundle contains every package. If not, it needs `node_modules`, and the SQLite thread is not bundled. */
  readonly selfContained: boolean;
  /** Arguments of Node to run the bundler in a folder with the files of `fixtures/bundlers`. */
  readonly args: readonly string[];
}

/** Installs the dependencies of the application of `fixtures/handling` and of its bundlers. */
export async function installBundlers(
  folder: string,
  payments: PackedPackage,
  dependencies: Record<string, string>,
): Promise<void> {
  await mkdir(folder);
  const all = { ...dependencies, [payments.manifest.name]: `file:${payments.tarball}` };
  await writeJson(join(folder, 'package.json'), { private: true, dependencies: all });
  await npm(['install', '--no-audit', '--no-fund', '--prefer-offline'], folder);
}

/** The application of `fixtures/handling`, compiled with tsc and then bundled. */
export class BundledApplication {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * @param installed the folder of {@link installBundlers}
   * @throws with the output of the compiler or the bundler if either fails, or the bundler warns about the package.
   */
  static async bundle(installed: string, bundling: Bundling): Promise<BundledApplication> {
    const { name, format, selfContained, args } = bundling;
    const folder = join(installed, name.replaceAll(/\W+/g, '-'));
    await cp(CONFIGURATIONS, folder, { recursive: true });
    await symlink(join(installed, 'node_modules'), join(folder, 'node_modules'));
    const type = PACKAGE_TYPES[format];
    await writeJson(join(folder, 'package.json'), { private: true, type });
    const threadPath = join(folder, `thread-path-${format}.ts`);
    await compileHandling(folder, selfContained ? threadPath : undefined);
    const { output } = await succeed(process.execPath, [...args], { cwd: folder });
    if (WARNING.test(output)) throw new Error(output);
    if (!selfContained) return new BundledApplication(folder);

    const isolated = `${installed}-${name.replaceAll(/\W+/g, '-')}`;
    await cp(join(folder, 'dist'), join(isolated, 'dist'), { recursive: true });
    await writeJson(join(isolated, 'package.json'), { private: true, type });
    return new BundledApplication(isolated);
  }

  /** @throws with the application's output if it does not receive and handle a signed webhook request. */
  async handles(node: string, inbox: 'memory' | 'sqlite'): Promise<void> {
    await handlesEvent({ program: node, args: ['dist/main.js'], cwd: this.#folder, inbox });
  }
}

/**
 * Checks that a guide shows the configurations that ran.
 *
 * @throws with the names of the files that the guide does not contain unchanged.
 */
export function showsConfigurations(guide: string, files: Readonly<Record<string, string>>): void {
  const missing = Object.entries(files)
    .filter(([, text]) => !guide.includes(text.trim()))
    .map(([name]) => name);
  if (missing.length > 0) throw new Error(`it does not show ${missing.join(', ')}`);
}

async function writeJson(path: string, value: unknown): Promise<void> {
  await writeFile(path, JSON.stringify(value, null, 2));
}
