import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Checks } from './checks.ts';
import { npm, run, succeed } from '../support/processes/run-command.ts';
import { OPTIONAL_PEERS } from './merchant-application-setups.ts';
import type { Merchant } from './merchant-application-setups.ts';
import type { PackedPackage } from './packed-package.ts';
import { Trap } from './trap-package.ts';

/** A line that the application prints for each of its checks; see fixtures/merchant/report.ts. */
interface ReportedCheck {
  title: string;
  failure?: string;
}

const SOURCES = join(import.meta.dirname, 'fixtures/merchant');
/** Packages that the application may leave out. The packages under test must load without them. */
const NOT_NEEDED = [
  '@nestjs/config',
  '@nestjs/platform-express',
  '@nestjs/platform-fastify',
  '@opentelemetry/api',
  'class-transformer',
  'class-validator',
  'pg',
];

/** A new application in its own folder, with the tarballs installed. */
export class MerchantApplication {
  readonly #merchant: Merchant;
  readonly #folder: string;
  readonly #packages: readonly PackedPackage[];

  private constructor(merchant: Merchant, folder: string, packages: readonly PackedPackage[]) {
    this.#merchant = merchant;
    this.#folder = folder;
    this.#packages = packages;
  }

  /** @throws with npm's output if the install fails or npm reports a conflict between peers. */
  static async install(
    merchant: Merchant,
    folder: string,
    packages: readonly PackedPackage[],
  ): Promise<MerchantApplication> {
    const application = new MerchantApplication(merchant, folder, packages);
    await mkdir(folder);
    await cp(SOURCES, join(folder, 'src'), { recursive: true });
    const { type, compilerOptions, dependencies } = merchant;
    const tarballs = packages.map(({ manifest, tarball }) => [manifest.name, `file:${tarball}`]);
    await writeJson(join(folder, 'package.json'), {
      private: true,
      type,
      dependencies: { ...dependencies, ...Object.fromEntries(tarballs) },
    });
    await writeJson(join(folder, 'tsconfig.json'), { compilerOptions, include: ['src'] });
    const all = application.#entries.map((name, i) => `import * as entry${i} from '${name}';\n`);
    const names = all.map((_, i) => `entry${i}`).join(', ');
    await writeFile(
      join(folder, 'src/every.entry.ts'),
      `${all.join('')}export const every: object[] = [${names}];\n`,
    );
    const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--prefer-offline'];
    const { output } = await npm(['install', '--strict-peer-deps', ...quiet], folder);
    if (output.includes('ERESOLVE')) throw new Error(output);
    return application;
  }

  /** The entries of the packages that this application can import: those whose optional peers it has. */
  get #entries(): string[] {
    return this.#packages
      .flatMap(({ entries }) => entries)
      .filter((name) => {
        const peer = OPTIONAL_PEERS[name];
        return peer === undefined || peer in this.#merchant.dependencies;
      });
  }

  /** @throws with npm's tree if a dependency is missing, extraneous, of a wrong version, or a nested copy of a peer. */
  async hasAllPeers(): Promise<void> {
    await npm(['ls', '--all'], this.#folder);
    const nested = this.#packages.flatMap(({ manifest: { name, peerDependencies = {} } }) =>
      Object.keys(peerDependencies)
        .map((peer) => join(name, 'node_modules', peer))
        .filter((path) => existsSync(join(this.#folder, 'node_modules', path))),
    );
    if (nested.length > 0)
      throw new Error(`nested copies of peers were installed: ${nested.join(', ')}`);
  }

  /** Imports every entry. Then imports the entries without optional peers while the {@link NOT_NEEDED} packages throw. */
  async imports(node: string): Promise<void> {
    await this.#import(this.#entries, node);
    const traps = NOT_NEEDED.map((name) => new Trap(join(this.#folder, 'node_modules', name)));
    try {
      for (const trap of traps) await trap.set();
      const withoutPeers = this.#entries.filter((name) => !(name in OPTIONAL_PEERS));
      await this.#import(withoutPeers, node);
    } finally {
      for (const trap of traps) await trap.remove();
    }
  }

  async #import(entries: readonly string[], node: string): Promise<void> {
    const { type } = this.#merchant;
    const script = entries
      .map((name) => (type === 'module' ? `import '${name}';` : `require('${name}');`))
      .join(' ');
    const args = [`--input-type=${type}`, '--eval', script];
    const { output } = await succeed(node, args, { cwd: this.#folder, timeoutMs: 120_000 });
    if (output !== '') throw new Error(`it printed:\n${output}`);
  }

  /**
   * Compiles the application and checks every declaration file that it imports.
   *
   * @returns the errors in the declarations of other packages, which only those packages can fix.
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
        line.startsWith('node_modules/') &&
        !this.#packages.some(({ manifest }) => line.startsWith(`node_modules/${manifest.name}/`)),
    );
    const own = errors.filter((line) => !foreign.includes(line));
    if (own.length > 0) throw new Error(own.join('\n'));
    const unread = this.#packages
      .flatMap((packed) =>
        packed.entries
          .filter((entry) => this.#entries.includes(entry))
          .map((entry) => `node_modules/${packed.manifest.name}/${packed.typesOf(entry)}`),
      )
      .filter((file) => !lines.some((line) => line.endsWith(file)));
    if (unread.length > 0) throw new Error(`the compiler did not read ${unread.join(', ')}`);
    const main = await readFile(join(this.#folder, 'dist/main.js'), 'utf8');
    const required = main.includes('require("nestjs-payments/testing")');
    if (required !== (this.#merchant.type === 'commonjs')) {
      throw new Error('the compiled files have the wrong module format');
    }
    return foreign;
  }

  /** Runs the application and records its own checks. Checks that it exits without a signal after them. */
  async runs(adapter: string, node: string, title: string, checks: Checks): Promise<void> {
    const args = ['dist/main.js', adapter];
    const { code, output } = await run(node, args, { cwd: this.#folder, timeoutMs: 120_000 });
    const [done, ...reported] = output
      .split('\n')
      .filter((line) => line.startsWith('{"title"'))
      .map((line) => JSON.parse(line) as ReportedCheck)
      .toReversed();
    for (const { title: promise, failure } of reported.toReversed()) {
      const id = /^AP-\d{2} /.exec(promise)?.[0] ?? '';
      checks.record(`${id}${title}, ${promise.slice(id.length)}`, failure);
    }
    await checks.that(`${title}: exits by itself`, () => {
      if (code !== 0 || done?.title !== 'end') throw new Error(`exit code ${code}:\n${output}`);
    });
  }
}

async function writeJson(path: string, value: unknown): Promise<void> {
  await writeFile(path, JSON.stringify(value, null, 2));
}
