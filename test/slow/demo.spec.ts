import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { ENGINES } from '../support/engines/engine-server.js';
import { startProgram } from '../support/processes/start-program.js';
import type { RunningProcess } from '../support/processes/running-process.js';

jest.setTimeout(180_000);

const DEMO = 'apps/demo/dist/main.js';
const BROKEN_SHOP = fileURLToPath(new URL('../support/shop/broken-shop.mjs', import.meta.url));

/** Runs the demo to its end. */
async function play(settings: Record<string, string>, ...args: string[]) {
  await using demo = startProgram(DEMO, settings, args);
  const ended = await demo.ended;
  return { ended, out: demo.out, err: demo.err, text: demo.out.join('\n') };
}

const failedChecks = (lines: readonly string[]) => lines.filter((line) => /^ +!!/.test(line));

/** The lines of the trace: a title, the start of its trace id, the process, the start and the duration. */
const SPAN = /^ {4}([│├└╌─ ]*)(\S.*?) +([\da-f]{8}) +(shop \d) +\+\d+ ms +\d+\.\d ms$/;

const spansIn = (lines: readonly string[]) =>
  lines.flatMap((line) => {
    const [, indent, title, trace] = SPAN.exec(line) ?? [];
    return title === undefined ? [] : [{ depth: indent!.length / 3, title, trace }];
  });

describe('npm run demo', () => {
  it('EX-13 npm run demo plays all its scenes on Fastify and exits with 0', async () => {
    const { ended, err, out, text } = await play({ SHOP_ADAPTER: 'fastify' }, '--once');
    expect(ended).toEqual({ code: 0, signal: null });
    expect(err).toEqual([]);
    expect(failedChecks(out)).toEqual([]);
    expect(out.filter((line) => /^ +ok /.test(line)).length).toBeGreaterThan(20);
    expect(out.at(-1)).toMatch(/^ +total .* the ledger is right$/);
    expect(text).toMatch(
      /ok +all recorded within one poll interval .* yes\n +measured: recorded at most \d/,
    );
  });

  it('npm run demo exits with 1 if the shop books payments twice and loses one', async () => {
    const settings = { SHOP_MISTAKE: 'records-twice,loses-one' };
    // How long a failing check waits. This test uses only the result at the end.
    const { ended, text } = await play(settings, '--once', '--wait', '1', '--shop', BROKEN_SHOP);
    expect(ended.code).toBe(1);
    expect(text).toMatch(/RECORDED 2 TIMES\n[^]*THE LEDGER IS WRONG/);
    expect(text).toMatch(/LOST\n[^]*THE LEDGER IS WRONG/);
  });

  it('TE-09 npm run demo -- --once --telemetry names the missing spans of the trace and exits with 1', async () => {
    const settings = { SHOP_MISTAKE: 'traces-nothing' };
    const { ended, out } = await play(settings, '--once', '--telemetry', '--shop', BROKEN_SHOP);
    expect(ended).toEqual({ code: 1, signal: null });
    expect(failedChecks(out)).toEqual([
      expect.stringMatching(
        /missing spans +expected none +seen POST \/emulator\/checkout-invoices, POST \/webhooks\/payments$/,
      ),
    ]);
    expect(out.filter((line) => line.endsWith('the ledger is right'))).toHaveLength(1);
  });

  (ENGINES.bullmq.isInstalled() ? it : it.skip)(
    'EN-12 npm run demo -- --engine bullmq kills the engine, compares the entries of both services with the payments, and exits with 0',
    async () => {
      const { ended, err, out } = await play({}, '--engine', 'bullmq', '--once');
      expect(ended).toEqual({ code: 0, signal: null });
      expect(err).toEqual([]);
      expect(failedChecks(out)).toEqual([]);
      expect(out.filter((line) => /^ +total +18 payments .* is right$/.test(line))).toHaveLength(2);
    },
  );

  it.each([
    ['kafka', 'demo: --engine must be one of jetstream, bullmq, rabbitmq'],
    ['bullmq', /^demo: --engine bullmq needs a server .* apt-get install redis-server$/],
  ])(
    'npm run demo -- --engine %s without a server exits with 1 and names the fix',
    async (name, message) => {
      const { ended, err } = await play({ PATH: '' }, '--engine', name);
      expect(ended.code).toBe(1);
      expect(err).toEqual([expect.stringMatching(message)]);
    },
  );

  it('npm run demo closes the shop and the emulator if SIGTERM ends the demo', async () => {
    await using demo = startProgram(DEMO, {});
    const [, emulator] = await demo.prints(/^emulator +(http:\S+)/);
    const [, shop] = await demo.prints(/^shop +(http:\S+)/);
    expect(await demo.kill('SIGTERM')).toEqual({ code: 143, signal: null });
    await expect(fetch(emulator!)).rejects.toThrow();
    await expect(fetch(shop!)).rejects.toThrow();
  });

  it('npm run demo closes the emulator and prints the cause if the shop does not start', async () => {
    const { ended, err } = await play({ SHOP_ADAPTER: 'koa' }, '--once');
    expect(ended).toEqual({ code: 1, signal: null });
    expect(err.join('\n')).toContain('SHOP_ADAPTER must be express or fastify');
  });
});

/** One run on Express, which the last test ends. */
describe('npm run demo -- --telemetry --postgres', () => {
  let demo: RunningProcess;
  /** The addresses of the shop, the emulator, the console, and the metrics of each shop. */
  let addresses: string[];
  let operator: { username: string; password: string };

  beforeAll(async () => {
    demo = startProgram(DEMO, {}, ['--telemetry', '--postgres']);
    await demo.prints(/^Ctrl-C ends the demo/);
    addresses = demo.out.flatMap((line) => /^ {4}(http:\S+)$/.exec(line)?.[1] ?? []);
    const [, username = '', password = ''] = await demo.prints(
      /as (\S+) with the password (\S+):$/,
    );
    operator = { username, password };
  });
  afterAll(() => demo?.kill());

  it('npm run demo -- --telemetry --postgres runs three shops and kills one of them', () => {
    expect(demo.out[1]).toMatch(/^shop +http:\S+ +\(3 on PostgreSQL\)$/);
    expect(failedChecks(demo.out)).toEqual([]);
    const ledger = demo.out.filter((line) => line.endsWith('the ledger is right'));
    expect(ledger).toEqual([expect.stringMatching(/^ +total /)]);
  });

  it('TE-09 npm run demo -- --telemetry --postgres prints the trace of a payment from the checkout to the ledger, and metrics of each shop', () => {
    const spans = spansIn(demo.out);
    expect(spans.map(({ depth, title }) => `${depth} ${title}`)).toEqual([
      '0 POST /api/orders',
      '1 POST /emulator/checkout-invoices',
      '0 POST /webhooks/payments',
      '1 receive transaction.completed',
      '2 process transaction.completed',
      '3 GET /v1/transactions/{id}',
      '3 record in ledger',
    ]);
    const [checkout, , webhook, receipt, attempt, , ledger] = spans;
    expect(new Set([checkout!.trace, webhook!.trace, attempt!.trace]).size).toBe(3);
    expect(receipt!.trace).toBe(webhook!.trace);
    expect(ledger!.trace).toBe(attempt!.trace);

    const text = demo.out.join('\n');
    expect(text).toMatch(/^ {4}payments_events_received_total( +(-|[1-9]\d*)){3}$/m);
    expect(text).toMatch(/^ {4}payments_store_up( +1){3}$/m);
    const added = demo.out.slice(
      demo.out.findIndex((line) => line.endsWith('ledger is right')) + 1,
      demo.out.findIndex((line) => line.startsWith('Everything keeps running')),
    );
    expect(added.filter((line) => line.length > 100)).toEqual([]);
    // No secret, no signature and no phone number of Kenya.
    expect(
      added.filter((line) => /whsec_|secret|signature|Bearer|\b(\+?254|0)7\d{8}\b/i.test(line)),
    ).toEqual([]);
  });

  it('TE-09 npm run demo -- --telemetry --postgres serves the pages, and the metrics of each shop', async () => {
    const [shop, emulator, console, ...metrics] = addresses;
    expect((await fetch(shop!)).status).toBe(200);
    expect((await fetch(emulator!)).status).toBe(200);
    expect((await fetch(console!)).status).toBe(401);
    const credentials = `${operator.username}:${operator.password}`;
    const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
    expect((await fetch(console!, { headers: { authorization } })).status).toBe(200);
    expect(metrics).toEqual(Array(3).fill(expect.stringMatching(/\/metrics$/)));
    for (const address of metrics) {
      const response = await fetch(address);
      expect(response.status).toBe(200);
      expect(await response.text()).toMatch(/^payments_store_up(\{.*\})? 1$/m);
    }
  });

  it('npm run demo -- --telemetry --postgres keeps running until Ctrl-C, and then exits with 0', async () => {
    expect(await demo.kill('SIGINT')).toEqual({ code: 0, signal: null });
    expect(demo.err).toEqual([]);
    for (const address of addresses) await expect(fetch(address)).rejects.toThrow();
  });
});
