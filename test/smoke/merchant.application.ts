import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Checks } from './checks.ts';
import { npm, run, succeed } from './command.ts';
import type { Merchant } from './merchants.ts';
import { Trap } from './trap.package.ts';

/** What the application prints for each of its own checks; see application/report.ts. */
interface Reported {
  title: string;
  failure?: string;
}

const SOURCES = join(import.meta.dirname, 'application');
/** What a package of ours must not need: the adapters are the application's choice, the database too. */
const NOT_NEEDED = ['@nestjs/platform-express', '@nestjs/platform-fastify', 'pg'];

/** A fresh application in a folder of its own, with the tarball installed. */
export class MerchantApplication {
  readonly #merchant: Merchant;
  readonly #folder: string;

  private constructor(merchant: Merchant, folder: string) {
    this.#merchant = merchant;
    this.#folder = folder;
  }

  /** @throws with npm's output where the install fails, or npm finds any peer it must override. */
  static async install(
    merchant: Merchant,
    folder: string,
    tarball: string,
  ): Promise<MerchantApplication> {
    await mkdir(folder);
    await cp(SOURCES, join(folder, 'src'), { recursive: true });
    const { type, compilerOptions, dependencies } = merchant;
    await writeJson(join(folder, 'package.json'), {
      private: true,
      type,
      dependencies: { ...dependencies, 'nestjs-payments': `file:${tarball}` },
    });
    await writeJson(join(folder, 'tsconfig.json'), { compilerOptions, include: ['src'] });
    const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--prefer-offline'];
    const { output } = await npm(['install', '--strict-peer-deps', ...quiet], folder);
    if (output.includes('ERESOLVE')) throw new Error(output);
    return new MerchantApplication(merchant, folder);
  }

  /** @throws with npm's tree where anything is missing, extraneous or of a version nobody asked for. */
  async hasAllPeers(): Promise<void> {
    await npm(['ls', '--all'], this.#folder);
    const nests = await readdir(join(this.#folder, 'node_modules/nestjs-payments'));
    if (nests.includes('node_modules')) throw new Error('nestjs-payments brought its own copies');
  }

  /** Imports the package while what it must not need can't be imported. */
  async imports(node: string): Promise<void> {
    const traps = NOT_NEEDED.map((name) => new Trap(join(this.#folder, 'node_modules', name)));
    try {
      for (const trap of traps) await trap.set();
      const { type } = this.#merchant;
      const script = ['nestjs-payments', 'nestjs-payments/testing']
        .map((name) => (type === 'module' ? `import '${name}';` : `require('${name}');`))
        .join(' ');
      const args = [`--input-type=${type}`, '--eval', script];
      const { output } = await succeed(node, args, { cwd: this.#folder, timeoutMs: 30_000 });
      if (output !== '') throw new Error(`it printed:\n${output}`);
    } finally {
      for (const trap of traps) await trap.lift();
    }
  }

  /**
   * Compiles the application, with every declaration it reaches.
   *
   * @returns the errors other packages have in theirs, which are not ours to mend.
   * @throws with the errors in the application or in the package's declarations.
   */
  async compiles(): Promise<string[]> {
    const tsc = join(this.#folder, 'node_modules/typescript/bin/tsc');
    const args = [tsc, '--pretty', 'false', '--listFiles'];
    const { stdout } = await run(process.execPath, args, { cwd: this.#folder });
    const lines = stdout.split('\n');
    const errors = lines.filter((line) => /\berror TS\d+:/.test(line));
    const foreign = errors.filter(
      (line) =>
        line.startsWith('node_modules/') && !line.startsWith('node_modules/nestjs-payments/'),
    );
    const own = errors.filter((line) => !foreign.includes(line));
    if (own.length > 0) throw new Error(own.join('\n'));
    for (const declarations of ['dist/index.d.ts', 'dist/testing/index.d.ts']) {
      if (!lines.some((line) => line.endsWith(`node_modules/nestjs-payments/${declarations}`))) {
        throw new Error(`the compiler did not read ${declarations}:\n${stdout}`);
      }
    }
    const main = await readFile(join(this.#folder, 'dist/main.js'), 'utf8');
    const required = main.includes('require("nestjs-payments/testing")');
    if (required !== (this.#merchant.type === 'commonjs')) {
      throw new Error('it is not compiled to the modules it was to be compiled to');
    }
    return foreign;
  }

  /** Runs the application: its own checks, and that it goes by itself after them. */
  async runs(adapter: string, node: string, title: string, checks: Checks): Promise<void> {
    const args = ['dist/main.js', adapter];
    const { code, output } = await run(node, args, { cwd: this.#folder, timeoutMs: 30_000 });
    const [done, ...reported] = output
      .split('\n')
      .filter((line) => line.startsWith('{"title"'))
      .map((line) => JSON.parse(line) as Reported)
      .toReversed();
    for (const { title: promise, failure } of reported.toReversed()) {
      checks.record(`${title}, ${promise}`, failure);
    }
    await checks.that(`${title}: ends by itself`, () => {
      if (code !== 0 || done?.title !== 'end') throw new Error(`exit code ${code}:\n${output}`);
    });
  }
}

async function writeJson(path: string, value: unknown): Promise<void> {
  await writeFile(path, JSON.stringify(value, null, 2));
}
