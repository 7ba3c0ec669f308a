import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { npm, succeed, environment } from '../support/processes/run-command.ts';
import type { CommandResult } from '../support/processes/run-command.ts';

/** Variables of this machine's npm configuration that an install needs. */
const KEPT = /^npm_config_(registry|cafile|cache|proxy|https_proxy|noproxy)$/i;

/** One version of npm in its own folder, without this machine's user configuration. */
export class PinnedNpm {
  readonly version: string;
  readonly #cli: string;
  readonly #env: NodeJS.ProcessEnv;

  private constructor(version: string, folder: string) {
    this.version = version;
    this.#cli = join(folder, 'node_modules/npm/bin/npm-cli.js');
    const kept = Object.entries(environment()).filter(
      ([name]) => !/^npm_config_/i.test(name) || KEPT.test(name),
    );
    this.#env = { ...Object.fromEntries(kept), npm_config_userconfig: join(folder, 'npmrc') };
  }

  static async install(version: string, folder: string): Promise<PinnedNpm> {
    await mkdir(folder);
    const manifest = { private: true, dependencies: { npm: version } };
    await writeFile(join(folder, 'package.json'), JSON.stringify(manifest));
    await npm(['install', '--no-audit', '--no-fund', '--prefer-offline'], folder);
    await writeFile(join(folder, 'npmrc'), '');
    return new PinnedNpm(version, folder);
  }

  /**
   * Installs dependencies into a new folder.
   *
   * @throws with npm's output if the install fails or prints a warning.
   */
  async installs(folder: string, dependencies: Record<string, string>): Promise<void> {
    await mkdir(folder);
    const manifest = { private: true, dependencies };
    await writeFile(join(folder, 'package.json'), JSON.stringify(manifest));
    const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--prefer-offline'];
    const { output } = await this.#run(['install', ...quiet], folder);
    if (/\bwarn\b/i.test(output)) throw new Error(output);
  }

  #run(args: string[], cwd: string): Promise<CommandResult> {
    return succeed(process.execPath, [this.#cli, ...args], { cwd, env: this.#env });
  }
}
