import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readCodeBlocks } from './code-blocks.ts';
import { npm, succeed } from '../support/processes/run-command.ts';
import { generate, generatedEnvironment, readJson } from './nest-generator.ts';
import type { NestGenerator } from './nest-generator.ts';
import { RunningProcess } from '../support/processes/running-process.ts';
import type { NodeProgram, SmokeContext } from './smoke-part.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures/generated');
const TESTS = ['src/orders.spec.ts', 'test/payments.e2e-spec.ts'];
/** Tools of the generated application that neither build nor test it. */
const NOT_NEEDED = /eslint|prettier|oxlint|globals|coverage|@nestjs\/mau/;

export type Adapter = 'express' | 'fastify';

type Json = Record<string, unknown>;
type Manifest = Json & Record<'dependencies' | 'devDependencies', Record<string, string>>;

/** An application that `nest new` generated, with the code of the quick start and a few tests. */
export class GeneratedApplication {
  readonly folder: string;
  readonly #generator: NestGenerator;
  readonly #generatedMain: string;
  readonly #fastifyMain: string;
  #generatedJest: { unit: Json; e2e: Json } | undefined;

  private constructor(
    folder: string,
    generator: NestGenerator,
    mains: { generated: string; fastify: string },
  ) {
    this.folder = folder;
    this.#generator = generator;
    this.#generatedMain = mains.generated;
    this.#fastifyMain = mains.fastify;
  }

  /**
   * Generates the application, installs the packages of the quick start, and adds the code of the quick start.
   *
   * @param tools further packages, as arguments of `npm install`
   * @throws with npm's output if the install fails
   */
  static async create(
    generator: NestGenerator,
    folder: string,
    { root, payments, emulator }: Pick<SmokeContext, 'root' | 'payments' | 'emulator'>,
    tools: readonly string[],
  ): Promise<GeneratedApplication> {
    const app = await generate(generator, folder);
    const blocks = await readCodeBlocks(join(root, 'docs/getting-started.md'), 'Quick start');
    const files = new Map(
      blocks.map(({ attributes, code }) => [attributes.get('file') ?? '', code]),
    );
    const application = new GeneratedApplication(app, generator, {
      generated: await readFile(join(app, 'src/main.ts'), 'utf8'),
      fastify: files.get('src/main.fastify.ts') ?? '',
    });
    for (const file of ['src/orders.ts', 'src/app.module.ts']) {
      await application.#write(file, files.get(file) ?? '');
    }
    for (const file of TESTS) {
      await application.#write(file, await readFile(join(FIXTURES, file), 'utf8'));
    }
    const documented = blocks
      .filter(({ language }) => language === 'sh')
      .flatMap(({ code }) => [...code.matchAll(/^npm install (?!-)(.*)$/gm)])
      .flatMap(([, names]) => names!.split(' '))
      .filter((name) => name !== payments.manifest.name);
    const names = documented.map((name) =>
      name in generator.majors ? `${name}@${generator.majors[name]}` : name,
    );
    await installInto(app, [...names, ...tools, payments.tarball, emulator.tarball]);
    return application;
  }

  /**
   * Starts the emulator with the command of the quick start, on free ports. The emulator saves its settings in
   * `.env`, from which the application and its tests read them.
   */
  async startEmulator(port: number): Promise<RunningEmulator> {
    const command = join(this.folder, 'node_modules/.bin/payments-emulator');
    const url = `http://127.0.0.1:${port}/webhooks/payments`;
    const ports = ['--port', '0', '--production-port', '0'];
    const process = new RunningProcess(
      command,
      ['--webhook-url', url, '--save-env', '.env', ...ports],
      { cwd: this.folder },
    );
    const [, baseUrl] = await process.prints(/sandbox +(http\S+)[^]*order-1/);
    return { process, baseUrl: baseUrl! };
  }

  /** @throws with the compiler's output, or if there is no `dist/main.js`. */
  async build(builder: string, adapter: Adapter): Promise<void> {
    await this.#write(
      'src/main.ts',
      adapter === 'fastify' ? this.#fastifyMain : this.#generatedMain,
    );
    await rm(join(this.folder, 'dist'), { recursive: true, force: true });
    const args = ['node_modules/@nestjs/cli/bin/nest.js', 'build'];
    const flags = builder === 'tsc' ? [] : ['--builder', builder];
    await succeed('node', [...args, ...flags], {
      cwd: this.folder,
      env: generatedEnvironment(),
    });
    await readFile(join(this.folder, 'dist/main.js'));
  }

  /** @throws if the application does not start or does not log a payment that the emulator completes. */
  async handlesPayment(port: number, emulatorUrl: string, node: NodeProgram): Promise<void> {
    const env = { ...generatedEnvironment(node.path), PORT: String(port) };
    await using app = new RunningProcess('node', ['dist/main'], { cwd: this.folder, env });
    await app.prints(/Nest application successfully started/);
    const command = join(this.folder, 'node_modules/.bin/payments-emulator');
    const payment = ['--amount', '350', '--reference', 'order-1'];
    await succeed(command, ['trigger', 'transaction.completed', ...payment, '--url', emulatorUrl], {
      cwd: this.folder,
      timeoutMs: 120_000,
    });
    await app.prints(/\[Orders\] Payment order-1: 350 paid/);
  }

  /** Adds options to the generated configuration of Jest. Replaces the options added before. */
  async configureJest(added: Json): Promise<void> {
    const manifestPath = join(this.folder, 'package.json');
    const e2ePath = join(this.folder, 'test/jest-e2e.json');
    const manifest = await readJson<Manifest>(manifestPath);
    this.#generatedJest ??= {
      unit: manifest['jest'] as Json,
      e2e: await readJson<Json>(e2ePath),
    };
    const { unit, e2e } = this.#generatedJest;
    await writeJson(manifestPath, { ...manifest, jest: { ...unit, ...added } });
    await writeJson(e2ePath, { ...e2e, ...added });
  }

  /**
   * Runs the generated script `npm test` or `npm run test:e2e`.
   *
   * @throws with the output if a test fails, or fewer tests run than the application has
   */
  async test(
    script: 'test' | 'test:e2e',
    node: NodeProgram,
    added: NodeJS.ProcessEnv = {},
  ): Promise<void> {
    const env = { ...generatedEnvironment(node.path), CI: 'true', NO_COLOR: '1', ...added };
    const { output } = await npm(['run', script], this.folder, env);
    // The generator writes one test for each script, and the fixture has two.
    if (!/Tests:? +3 passed/.test(output)) throw new Error(output);
  }

  /** Writes a file. Jest does not resolve `./orders.js` to a .ts file, so CommonJS applications leave out the suffix. */
  async #write(file: string, code: string): Promise<void> {
    if (code === '') throw new Error(`the quick start has no file ${file}`);
    const adapted =
      this.#generator.type === 'module' ? code : code.replaceAll(/(from '\.[^']*)\.js'/g, "$1'");
    await writeFile(join(this.folder, file), adapted);
  }
}

/**
 * Installs packages into a generated application, and removes the tools that neither build nor test it.
 *
 * @param packages arguments of `npm install` or `pnpm add`
 */
export async function installInto(
  folder: string,
  packages: readonly string[],
  manager: 'npm' | 'pnpm' = 'npm',
  env = generatedEnvironment(),
): Promise<void> {
  const path = join(folder, 'package.json');
  const manifest = await readJson<Manifest>(path);
  for (const kind of ['dependencies', 'devDependencies'] as const) {
    const needed = Object.entries(manifest[kind]).filter(([name]) => !NOT_NEEDED.test(name));
    manifest[kind] = Object.fromEntries(needed);
  }
  await writeJson(path, manifest);
  const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--prefer-offline'];
  if (manager === 'pnpm') {
    await succeed('pnpm', ['add', '--ignore-scripts', ...packages], { cwd: folder, env });
  } else {
    await npm(['install', '--ignore-scripts', ...quiet, ...packages], folder, env);
  }
}

async function writeJson(path: string, content: Json): Promise<void> {
  await writeFile(path, JSON.stringify(content, null, 2));
}

/** The emulator, and the address of its sandbox. */
export interface RunningEmulator {
  readonly process: RunningProcess;
  readonly baseUrl: string;
}
