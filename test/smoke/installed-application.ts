import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { npm, succeed } from '../support/processes/run-command.ts';
import { compileHandling, handlesEvent } from './handling-application.ts';
import type { PackageManager } from './package-managers.ts';
import type { SmokeContext } from './smoke-part.ts';

const PEERS: Readonly<Record<string, string>> = {
  'reflect-metadata': '0.2.2',
  rxjs: '7.8.2',
};

/** The application of `fixtures/handling`, installed with a package manager. */
export class InstalledApplication {
  readonly #folder: string;
  readonly #nodeOptions: string;

  private constructor(folder: string, nodeOptions: string) {
    this.#folder = folder;
    this.#nodeOptions = nodeOptions;
  }

  /** @throws with the package manager's output if the install fails or warns about a dependency. */
  static async install(
    home: string,
    manager: PackageManager,
    application: { type: string; dependencies: Readonly<Record<string, string>> },
    { payments }: SmokeContext,
  ): Promise<InstalledApplication> {
    const tool = join(home, 'tool');
    await mkdir(tool, { recursive: true });
    await writeJson(join(tool, 'package.json'), {
      private: true,
      dependencies: manager.dependency,
    });
    await npm(['install', '--no-audit', '--no-fund', '--prefer-offline'], tool);

    const folder = join(home, 'application');
    await mkdir(folder);
    const { type } = application;
    const dependencies = {
      ...PEERS,
      ...application.dependencies,
      [payments.manifest.name]: `file:${payments.tarball}`,
    };
    await writeJson(join(folder, 'package.json'), { private: true, type, dependencies });
    const registry = process.env['npm_config_registry'] ?? 'https://registry.npmjs.org';
    for (const [name, text] of Object.entries(manager.files(registry))) {
      await writeFile(join(folder, name), text);
    }
    const program = join(tool, 'node_modules', manager.program);
    const { output } = await succeed(process.execPath, [program, 'install'], { cwd: folder });
    if (manager.warning.test(output)) throw new Error(output);
    await compileHandling(folder);
    return new InstalledApplication(folder, manager.nodeOptions(folder));
  }

  /** @throws with the application's output if it does not receive and handle a signed webhook request. */
  async handles(node: string, inbox: 'memory' | 'sqlite'): Promise<void> {
    await handlesEvent({
      program: node,
      args: ['compiled/main.js'],
      cwd: this.#folder,
      inbox,
      env: { NODE_OPTIONS: this.#nodeOptions },
    });
  }
}

async function writeJson(path: string, value: unknown): Promise<void> {
  await writeFile(path, JSON.stringify(value, null, 2));
}
