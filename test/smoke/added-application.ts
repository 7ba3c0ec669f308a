import { appendFile, mkdir, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { npm, succeed } from '../support/processes/run-command.ts';
import { RunningProcess } from '../support/processes/running-process.ts';
import { installInto } from './generated-application.ts';
import { generate, generatedEnvironment } from './nest-generator.ts';
import type { NestGenerator } from './nest-generator.ts';
import { PNPM } from './package-managers.ts';
import type { SmokeContext } from './smoke-part.ts';

/** An application to run `nest add nestjs-payments` in, and the flags of the command. */
export interface Addition {
  readonly name: string;
  readonly generator: NestGenerator;
  readonly manager: 'npm' | 'pnpm';
  /** Whether the application becomes the second of a monorepo. */
  readonly monorepo: boolean;
  readonly inbox: 'memory' | 'sqlite' | 'postgres';
  readonly console: boolean;
}

/** An application that `nest new` generated, and that `nest add` and `nest generate` change. */
export class AddedApplication {
  readonly #addition: Addition;
  readonly #folder: string;
  readonly #env: NodeJS.ProcessEnv;

  private constructor(addition: Addition, folder: string, env: NodeJS.ProcessEnv) {
    this.#addition = addition;
    this.#folder = folder;
    this.#env = env;
  }

  /** Generates the application, and installs its packages and the tarballs, because the packages are not published. */
  static async create(
    addition: Addition,
    home: string,
    { payments, consolePackage, emulator }: SmokeContext,
  ): Promise<AddedApplication> {
    const { generator, manager, monorepo, console } = addition;
    await mkdir(home);
    const folder = await generate(generator, home);
    const tools = monorepo ? (generator.builders['rspack'] ?? []) : [];
    const ours = [payments, emulator, ...(console ? [consolePackage] : [])];
    const packages = [...ours.map(({ tarball }) => tarball), ...tools];
    let env = generatedEnvironment();
    if (manager === 'pnpm') {
      const tool = join(home, 'tool');
      await mkdir(tool);
      await npm(
        [
          'install',
          '--prefix',
          tool,
          ...Object.entries(PNPM.dependency).map((one) => one.join('@')),
        ],
        tool,
      );
      env = { ...env, PATH: `${join(tool, 'node_modules/.bin')}${delimiter}${env['PATH']}` };
      const registry = env['npm_config_registry'] ?? 'https://registry.npmjs.org';
      const settings = [
        'hoist: false',
        'nodeLinker: isolated',
        `registry: ${registry}`,
        'storeDir: ../store',
      ];
      await writeFile(join(folder, 'pnpm-workspace.yaml'), settings.join('\n'));
    }
    await installInto(folder, packages, manager, env);
    const application = new AddedApplication(addition, folder, env);
    if (monorepo) await application.#nest('generate', 'app', 'other');
    await writeFile(join(folder, '.gitignore'), 'node_modules\ndist\n.env\n');
    return application;
  }

  async add(): Promise<void> {
    const { inbox, console } = this.#addition;
    const flags = [`--inbox=${inbox}`, `--console=${console}`, '--emulator'];
    await this.#nest('add', 'nestjs-payments', '--skip-install', ...this.#project, ...flags);
  }

  generateHandler(): Promise<void> {
    const collection = ['--collection', 'nestjs-payments'];
    return this.#nest('generate', ...collection, 'handler', 'orders', ...this.#project);
  }

  /** @throws with the differences if a second run of `nest add` changes a file. */
  async addsNothingTwice(): Promise<void> {
    await this.#git('init', '--quiet');
    await this.#git('add', '--all');
    await this.add();
    const differences = await this.#git('diff');
    const untracked = await this.#git('ls-files', '--others', '--exclude-standard');
    if (differences + untracked !== '') throw new Error(differences + untracked);
  }

  build(): Promise<void> {
    return this.#nest('build', ...(this.#addition.monorepo ? ['other'] : []));
  }

  /** @throws with the output unless the generated tests and those of the two handlers pass. */
  test(): Promise<void> {
    // Each handler has two tests, and each generated application has one.
    return this.#passes('test', this.#addition.monorepo ? 6 : 5);
  }

  /**
   * Starts the emulator with the script of `nest add`, and the application with the settings that the emulator saves.
   *
   * @throws unless both handlers get a payment, and the generated end-to-end test passes.
   */
  async handlesPayment(port: number, settings: Readonly<Record<string, string>>): Promise<void> {
    const lines = Object.entries(settings).map(([name, value]) => `${name}='${value}'\n`);
    await appendFile(join(this.#folder, '.env'), lines.join(''));
    const url = `http://127.0.0.1:${port}/webhooks/payments`;
    const flags = ['--webhook-url', url, '--port', '0', '--production-port', '0'];
    const options = { cwd: this.#folder, env: this.#env };
    await using emulator = new RunningProcess('npm', ['run', 'payments:emulator', '--', ...flags], {
      ...options,
      group: true,
    });
    const [, emulatorUrl] = await emulator.prints(/sandbox +(http\S+)[^]*order-1/);
    const main = this.#addition.monorepo ? 'dist/apps/other/main.js' : 'dist/main.js';
    await using application = new RunningProcess('node', [main], {
      ...options,
      // The second application of a monorepo reads `port`.
      env: { ...this.#env, PORT: String(port), port: String(port) },
    });
    await application.prints(/Nest application successfully started/);
    const command = join(this.#folder, 'node_modules/.bin/payments-emulator');
    const payment = ['--amount', '350', '--reference', 'order-1', '--url', emulatorUrl!];
    await succeed(command, ['trigger', 'transaction.completed', ...payment], options);
    for (const handler of ['PaymentsHandler', 'OrdersHandler']) {
      await application.prints(RegExp(`\\[${handler}\\] Payment order-1: 350 paid`));
    }
    if (!this.#addition.monorepo) await this.#passes('test:e2e', 1);
  }

  async #passes(script: string, tests: number): Promise<void> {
    const env = { ...this.#env, CI: 'true', NO_COLOR: '1' };
    const { output } = await npm(['run', script], this.#folder, env);
    if (!RegExp(`Tests:? +${tests} passed`).test(output)) throw new Error(output);
  }

  get #project(): string[] {
    return this.#addition.monorepo ? ['--project', 'other'] : [];
  }

  async #nest(...args: string[]): Promise<void> {
    const cli = 'node_modules/@nestjs/cli/bin/nest.js';
    const { output } = await succeed('node', [cli, ...args], { cwd: this.#folder, env: this.#env });
    // `nest generate` exits with 0 if the schematic fails.
    if (/^Error: |Failed to execute/m.test(output)) throw new Error(output);
  }

  async #git(...args: string[]): Promise<string> {
    return (await succeed('git', args, { cwd: this.#folder })).output;
  }
}
