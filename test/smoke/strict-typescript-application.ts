import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { npm, succeed } from '../support/processes/run-command.ts';
import type { CommandResult } from '../support/processes/run-command.ts';
import type { PackedPackage } from './packed-package.ts';

const COMPILER_OPTIONS = {
  target: 'ES2023',
  module: 'nodenext',
  strict: true,
  noUncheckedIndexedAccess: true,
  noImplicitOverride: true,
  // Errors in the declarations of other packages are not checked here.
  skipLibCheck: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  rootDir: 'src',
  outDir: 'dist',
  types: ['node'],
};

/** Development tools of every application, in exact versions. */
const TOOLS = { '@types/node': '24.19.2', typescript: '6.0.3' };

/** An ES module application in its own folder, compiled by tsc with `strict`. Its sources are in `src/`. */
export class StrictApplication {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /**
   * Installs the packed packages and the dependencies. Install scripts do not run, so that they download nothing.
   *
   * @throws with npm's output if the install fails.
   */
  static async install(
    folder: string,
    packages: readonly PackedPackage[],
    dependencies: Readonly<Record<string, string>>,
  ): Promise<StrictApplication> {
    await mkdir(join(folder, 'src'), { recursive: true });
    const ours = Object.fromEntries(
      packages.map(({ manifest, tarball }) => [manifest.name, `file:${tarball}`]),
    );
    const application = {
      private: true,
      type: 'module',
      dependencies: { ...TOOLS, ...dependencies, ...ours },
    };
    await writeFile(join(folder, 'package.json'), JSON.stringify(application, null, 2));
    const config = { compilerOptions: COMPILER_OPTIONS, include: ['src'] };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config, null, 2));
    const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--prefer-offline'];
    await npm(['install', '--ignore-scripts', ...quiet], folder);
    return new StrictApplication(folder);
  }

  /** @throws with the compiler's errors. */
  async compile(): Promise<void> {
    await this.run(['node_modules/typescript/bin/tsc', '--pretty', 'false']);
  }

  /**
   * Runs a script with the Node of this process, for at most a minute.
   *
   * @throws with the script's output if its exit code is not 0.
   */
  async run(args: string[], env: NodeJS.ProcessEnv = {}): Promise<CommandResult> {
    return succeed(process.execPath, args, {
      cwd: this.folder,
      timeoutMs: 60_000,
      env: { PATH: process.env['PATH'], NO_COLOR: '1', ...env },
    });
  }
}
