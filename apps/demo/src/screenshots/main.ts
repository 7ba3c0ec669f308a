import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { DemoEnvironment } from '../demo-environment.js';
import { SceneReport } from '../scene-report.js';
import { createSqliteFolder } from '../temporary-database.js';
import { captureAll } from './documentation-captures.js';
import { ScreenshotBrowser } from './screenshot-browser.js';
import { playTraffic } from './traffic.js';

const DOCS = fileURLToPath(new URL('../../../../docs/screenshots', import.meta.url));

const HELP = `Takes the screenshots of the documentation: pages of shop, emulator and console after some traffic.

  --minutes N    duration of the traffic before the screenshots, in minutes (default: 3)
  --out FOLDER   folder of the screenshots (default: docs/screenshots of the repository)
`;

process.exitCode = await main();

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      help: { type: 'boolean', default: false },
      minutes: { type: 'string', default: '3' },
      out: { type: 'string', default: DOCS },
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
    process.once(signal, () => abort.abort(new Error(`stopped by ${signal}`)));
  }
  try {
    await takeScreenshots(minutes, values.out, print, abort);
    return 0;
  } catch (error) {
    process.stderr.write(
      `screenshots: ${error instanceof Error ? error.message : String(error)}\n`,
    );
    return 1;
  }
}

async function takeScreenshots(
  minutes: number,
  out: string,
  print: (line: string) => void,
  abort: AbortController,
): Promise<void> {
  const { signal } = abort;
  await using database = await createSqliteFolder();
  await using browser = await ScreenshotBrowser.open(out, print);
  const shop = fileURLToPath(import.meta.resolve('shop/dist/main.js'));
  const options = { seed: 'screenshots', shop, database };
  const report = new SceneReport(print, signal);
  await using environment = await DemoEnvironment.start(options, report, signal, (reason) =>
    abort.abort(new Error(`the shop exited unexpectedly: ${reason}`)),
  );
  print(`${minutes} minutes of traffic …`);
  await playTraffic(environment, minutes, signal);
  await captureAll(browser, environment);
}
