import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { npm, succeed } from '../support/processes/run-command.ts';
import { RunningProcess } from '../support/processes/running-process.ts';
import type { PackedPackage } from './packed-package.ts';

/** The `payments-emulator` command, installed from the tarball. */
export class InstalledCommand {
  readonly #program: string;

  private constructor(program: string) {
    this.#program = program;
  }

  /** @throws with npm's output if the install fails. */
  static async install(folder: string, packed: PackedPackage): Promise<InstalledCommand> {
    await mkdir(folder);
    const dependencies = { [packed.manifest.name]: `file:${packed.tarball}` };
    await writeFile(
      join(folder, 'package.json'),
      JSON.stringify({ private: true, type: 'module', dependencies }),
    );
    await npm(['install', '--no-audit', '--no-fund', '--prefer-offline'], folder);
    return new InstalledCommand(join(folder, 'node_modules/.bin/payments-emulator'));
  }

  /** @throws if `--help` does not print the usage. */
  async printsHelp(node: string): Promise<void> {
    const { stdout } = await succeed(node, [this.#program, '--help'], { cwd: process.cwd() });
    if (!stdout.includes('Usage: payments-emulator')) throw new Error(`it printed:\n${stdout}`);
  }

  /** @throws if the emulator does not start, serve a page with its files, and exit on a signal. */
  async servesPages(node: string): Promise<void> {
    await this.#withEmulator(node, [], async (output) => {
      const [, address] = /(http:\S+\/emulator\/stk)\b/.exec(output) ?? [];
      if (address === undefined) throw new Error(`it printed no address of a page:\n${output}`);
      await checkPage(address);
    });
  }

  /**
   * Runs `trigger` against an emulator that sends webhook requests to `webhookUrl`.
   *
   * @throws if the command fails or prints no transaction.
   */
  async triggersPayment(node: string, webhookUrl: string): Promise<void> {
    await this.#withEmulator(node, ['--webhook-url', webhookUrl], async (output) => {
      const [, url = ''] = /^export PAYMENTS_BASE_URL=(.+)$/m.exec(output) ?? [];
      const flags = ['--amount', '350', '--reference', 'order-1', '--url', url];
      const args = [this.#program, 'trigger', 'transaction.completed', ...flags];
      const { stdout } = await succeed(node, args, { cwd: process.cwd(), timeoutMs: 120_000 });
      if (!/^transaction  [0-9a-f-]{36} \(350, order-1\)$/m.test(stdout)) throw new Error(stdout);
    });
  }

  /**
   * Starts an emulator twice with the same seed and saves its settings each time.
   *
   * @throws if the saved secret is not the printed secret, or differs between the two starts.
   */
  async savesSettings(node: string, folder: string): Promise<void> {
    const file = join(folder, '.env');
    const secrets: string[] = [];
    for (const _ of [1, 2]) {
      await this.#withEmulator(node, ['--seed', 'shop', '--save-env', file], async (output) => {
        const print = 'console.log(process.env.PAYMENTS_WEBHOOK_SECRET)';
        const args = [`--env-file=${file}`, '-e', print];
        const { stdout } = await succeed(node, args, { cwd: folder });
        const line = `export PAYMENTS_WEBHOOK_SECRET=${stdout}`;
        if (!output.includes(line)) throw new Error(`it did not print ${line}:\n${output}`);
        secrets.push(stdout);
      });
    }
    if (secrets[0] !== secrets[1]) throw new Error('the second start has another webhook secret');
  }

  /** Starts an emulator on free ports, calls `use` with its output, and stops it. */
  async #withEmulator(
    node: string,
    flags: string[],
    use: (output: string) => Promise<void>,
  ): Promise<void> {
    const args = [this.#program, '--port', '0', '--production-port', '0', ...flags];
    await using emulator = new RunningProcess(node, args);
    await emulator.prints(/--reference/);
    await use(emulator.output);
    const { code } = await emulator.kill('SIGTERM');
    if (code !== 0) throw new Error(`it exited with ${code}:\n${emulator.output}`);
  }
}

async function checkPage(address: string): Promise<void> {
  const page = await fetch(address);
  const html = await page.text();
  const files = [...html.matchAll(/(?:src|href)="([^"#]+\.(?:js|css))"/g)].map(([, file]) => file!);
  if (!page.ok || files.length < 2)
    throw new Error(`${address} responded ${page.status}:\n${html}`);
  for (const file of files) {
    const { status } = await fetch(new URL(file, page.url));
    if (status !== 200) throw new Error(`${file} responded ${status}`);
  }
}
