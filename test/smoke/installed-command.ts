import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { npm, succeed } from './command.ts';
import type { PackedPackage } from './packed-package.ts';

/** The `payments-emulator` command, as somebody gets it who installs the tarball. */
export class InstalledCommand {
  readonly #program: string;

  private constructor(program: string) {
    this.#program = program;
  }

  /** @throws with npm's output where the install fails. */
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

  /** @throws where `--help` does not say how it is used. */
  async helps(node: string): Promise<void> {
    const { stdout } = await succeed(node, [this.#program, '--help'], { cwd: process.cwd() });
    if (!stdout.includes('Usage: payments-emulator')) throw new Error(`it printed:\n${stdout}`);
  }

  /** @throws where it does not start, serve a page with its files, and end when it is told to. */
  async serves(node: string): Promise<void> {
    const args = [this.#program, '--port', '0', '--production-port', '0'];
    const child = spawn(node, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    // Whatever it waits for, it does not wait for ever.
    const impatience = setTimeout(() => child.kill('SIGKILL'), 30_000);
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
    const closed = once(child, 'close') as Promise<[number | null]>;
    try {
      let address: string | undefined;
      for await (const text of child.stdout.setEncoding('utf8') as AsyncIterable<string>) {
        output += text;
        address = /(http:\S+\/emulator\/stk)\b/.exec(output)?.[1];
        if (address !== undefined) break;
      }
      if (address === undefined) throw new Error(`it named no page:\n${output}`);
      await servesPage(address);
      child.kill('SIGTERM');
      const [code] = await closed;
      if (code !== 0) throw new Error(`it ended with ${code}:\n${output}`);
    } finally {
      clearTimeout(impatience);
      child.kill('SIGKILL');
    }
  }
}

async function servesPage(address: string): Promise<void> {
  const page = await fetch(address);
  const html = await page.text();
  const files = [...html.matchAll(/(?:src|href)="([^"#]+\.(?:js|css))"/g)].map(([, file]) => file!);
  if (!page.ok || files.length < 2) throw new Error(`${address} answered ${page.status}:\n${html}`);
  for (const file of files) {
    const { status } = await fetch(new URL(file, page.url));
    if (status !== 200) throw new Error(`${file} answered ${status}`);
  }
}
