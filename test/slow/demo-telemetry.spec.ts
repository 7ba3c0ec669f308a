import { fileURLToPath } from 'node:url';
import { describe, expect, it, jest } from '@jest/globals';
import { startProgram } from '../support/processes/program.js';

jest.setTimeout(180_000);

const DEMO = 'apps/demo/dist/main.js';
const BROKEN_SHOP = fileURLToPath(new URL('../support/shop/broken-shop.mjs', import.meta.url));

/** The lines of the trace: a title, the start of its trace id, the process, the start and the duration. */
const SPAN = /^ {4}([│├└╌─ ]*)(\S.*?) +([\da-f]{8}) +(shop \d) +\+\d+ ms +\d+\.\d ms$/;

const spansIn = (lines: readonly string[]) =>
  lines.flatMap((line) => {
    const [, indent, title, trace, process] = SPAN.exec(line) ?? [];
    return title === undefined ? [] : [{ depth: indent!.length / 3, title, trace, process }];
  });

describe('npm run demo -- --telemetry', () => {
  it('TE-09 npm run demo -- --once --telemetry prints the trace of a payment from the checkout to the ledger, scrapes each shop, and exits with 0', async () => {
    await using demo = startProgram(DEMO, {}, ['--once', '--telemetry']);
    const ended = await demo.ended;
    expect({ ended, err: demo.err }).toEqual({ ended: { code: 0, signal: null }, err: [] });

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
    expect(text).toMatch(/^ {4}payments_events_received_total( +(-|[1-9]\d*))+$/m);
    expect(text).toMatch(/^ {4}payments_store_up( +1)+$/m);
    const added = demo.out.slice(
      demo.out.findIndex((line) => line.endsWith('ledger is right')) + 1,
    );
    expect(added.filter((line) => line.length > 100)).toEqual([]);
    // No secret, no signature and no phone number of Kenya.
    expect(
      added.filter((line) => /whsec_|secret|signature|Bearer|\b(\+?254|0)7\d{8}\b/i.test(line)),
    ).toEqual([]);
  });

  it('TE-09 npm run demo -- --telemetry serves the metrics of three shops on PostgreSQL until Ctrl-C', async () => {
    await using demo = startProgram(DEMO, {}, ['--telemetry', '--postgres']);
    await demo.prints(/^Ctrl-C closes them/);
    const addresses = demo.out.flatMap((line) => /^ {4}(http:\S+\/metrics)$/.exec(line)?.[1] ?? []);
    expect(addresses).toHaveLength(3);
    for (const address of addresses) {
      const response = await fetch(address);
      expect(response.status).toBe(200);
      expect(await response.text()).toMatch(/^payments_store_up(\{.*\})? 1$/m);
    }
    expect(spansIn(demo.out)).toHaveLength(7);
    expect(await demo.kill('SIGINT')).toEqual({ code: 0, signal: null });
    for (const address of addresses) await expect(fetch(address)).rejects.toThrow();
  });

  it('TE-09 npm run demo -- --once --telemetry names the missing spans and exits with 1 if the trace lacks them', async () => {
    const settings = { SHOP_MISTAKE: 'traces-nothing' };
    const args = ['--once', '--telemetry', '--shop', BROKEN_SHOP];
    await using demo = startProgram(DEMO, settings, args);
    expect(await demo.ended).toEqual({ code: 1, signal: null });
    expect(demo.out.filter((line) => /^ +!!/.test(line))).toEqual([
      expect.stringMatching(
        /missing spans +expected none +seen POST \/emulator\/checkout-invoices, POST \/webhooks\/payments$/,
      ),
    ]);
    expect(demo.out.filter((line) => line.endsWith('the ledger is right'))).toHaveLength(1);
  });
});
