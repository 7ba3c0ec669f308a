import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openFolder } from '../place.js';
import { Report } from '../report.js';
import { Stage } from '../stage.js';
import { takeAll } from './album.js';
import { Camera } from './camera.js';
import { playTraffic } from './traffic.js';

const HELP = `Takes the pictures of the documentation: real pages of the real shop, emulator and console, after some traffic.

  --minutes N    how long customers buy and pay before the pictures are taken (default: 3)
  --out FOLDER   where the pictures go (default: docs/screenshots of the repository)
`;

process.exitCode = await main();

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      help: { type: 'boolean', default: false },
      minutes: { type: 'string', default: '3' },
      out: {
        type: 'string',
        default: fileURLToPath(new URL('../../../../docs/screenshots', import.meta.url)),
      },
    },
  });
  const print = (line: string): void => void process.stdout.write(`${line}\n`);
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const minutes = Number(values.minutes);
  if (!(minutes >= 0 && minutes <= 60)) {
    process.stderr.write('screenshots: --minutes must be a number from 0 to 60\n');
    return 1;
  }
  const abort = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => abort.abort(new Error(`ended by ${signal}`)));
  }
  try {
    await shoot(minutes, values.out, print, abort);
    return 0;
  } catch (error) {
    process.stderr.write(
      `screenshots: ${error instanceof Error ? error.message : String(error)}\n`,
    );
    return 1;
  }
}

async function shoot(
  minutes: number,
  folder: string,
  print: (line: string) => void,
  abort: AbortController,
): Promise<void> {
  const { signal } = abort;
  await using place = await openFolder();
  await using camera = await Camera.open(folder, print);
  const shop = fileURLToPath(import.meta.resolve('shop/dist/main.js'));
  const options = { seed: 'screenshots', shop, place };
  await using stage = await Stage.set(options, new Report(print, signal), signal, (how) =>
    abort.abort(new Error(`the shop ended by itself: ${how}`)),
  );
  print(`${minutes} minutes of traffic …`);
  await playTraffic(stage, minutes, signal);
  await takeAll(camera, stage);
}
