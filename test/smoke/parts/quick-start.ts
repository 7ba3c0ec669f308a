import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readCodeBlocks } from '../code-blocks.ts';
import type { CodeBlock } from '../code-blocks.ts';
import { succeed } from '../../support/processes/command.ts';
import { generatedEnvironment } from '../nest-generator.ts';
import { RunningProcess } from '../running-process.ts';
import type { SmokeContext, SmokePart } from '../smoke-part.ts';

const LIMIT_MS = 5 * 60_000;
const ADAPTERS = ['Express', 'Fastify'] as const;

/** Runs the commands of docs/getting-started.md in an empty folder, with the fixed ports of the page. */
export const part: SmokePart = {
  description: 'the quick start of docs/getting-started.md, pasted into an empty folder',
  async run(context, checks) {
    for (const adapter of ADAPTERS.slice(0, context.all ? undefined : 1)) {
      const folder = join(context.folder, adapter);
      await mkdir(folder);
      const startMs = performance.now();
      const title = `AP-15 quick start, ${adapter}`;
      const logged = await checks.that(`${title}: the application logs the payment`, () =>
        followSteps(folder, adapter, context),
      );
      if (!logged) continue;
      await checks.that(`${title}: takes less than five minutes`, () => {
        const tookMs = performance.now() - startMs;
        if (tookMs > LIMIT_MS) throw new Error(`it took ${Math.round(tookMs / 1000)} s`);
      });
    }
  },
};

/** Follows the steps of the page. The packages are not published, so `npm install` gets the tarballs. */
async function followSteps(
  folder: string,
  adapter: (typeof ADAPTERS)[number],
  { root, payments, emulator }: SmokeContext,
): Promise<void> {
  const blocks = await readCodeBlocks(join(root, 'docs/getting-started.md'), 'Quick start');
  const tarballs = new Map(
    [payments, emulator].map(({ manifest, tarball }) => [manifest.name, tarball]),
  );
  const command = (word: string): string => commandWith(word, blocks, tarballs);
  const shop = join(folder, 'shop');
  const sh = (cwd: string, code: string): RunningProcess =>
    new RunningProcess('sh', ['-ec', code], { cwd, env: generatedEnvironment() });
  const finish = (cwd: string, code: string) =>
    succeed('sh', ['-ec', code], { cwd, env: generatedEnvironment() });

  await finish(folder, command('@nestjs/cli'));
  await writeFiles(shop, blocks);
  if (adapter === 'Fastify') {
    await finish(shop, command('platform-fastify'));
    await writeFile(join(shop, 'src/main.ts'), fileOf('src/main.fastify.ts', blocks));
  }
  await using service = sh(folder, command('--webhook-url'));
  await service.prints(/PAYMENTS_WEBHOOK_SECRET/);
  await using application = sh(shop, command('npm start'));
  await application.prints(/Nest application successfully started/);
  await finish(folder, command(' trigger '));
  const line = blocks.find(({ language }) => language === 'text')?.code.trim() ?? '';
  if (!/order-1.*350/.test(line))
    throw new Error(`the page shows no log line of the payment: "${line}"`);
  // The log pads the level with spaces.
  const words = line.split(/\s+/).map((word) => word.replaceAll(/[^\w-]/g, '\\$&'));
  await application.prints(RegExp(words.join('\\s+')));
}

/** The only block of shell commands that contains the text. */
function commandWith(
  text: string,
  blocks: readonly CodeBlock[],
  tarballs: ReadonlyMap<string, string>,
): string {
  const found = blocks.filter(({ language, code }) => language === 'sh' && code.includes(text));
  if (found.length !== 1) throw new Error(`${found.length} commands of the page contain "${text}"`);
  return found[0]!.code.replaceAll(/^npm install .*$/gm, (line) =>
    line
      .split(' ')
      .map((word) => tarballs.get(word) ?? word)
      .join(' '),
  );
}

async function writeFiles(shop: string, blocks: readonly CodeBlock[]): Promise<void> {
  for (const file of ['src/orders.ts', 'src/app.module.ts']) {
    await writeFile(join(shop, file), fileOf(file, blocks));
  }
}

function fileOf(name: string, blocks: readonly CodeBlock[]): string {
  const block = blocks.find(({ attributes }) => attributes.get('file') === name);
  if (block === undefined) throw new Error(`the page has no file ${name}`);
  return block.code;
}
