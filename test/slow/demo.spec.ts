import { fileURLToPath } from 'node:url';
import { describe, expect, it, jest } from '@jest/globals';
import { startProgram } from '../support/processes/program.js';

jest.setTimeout(180_000);

const DEMO = 'apps/demo/dist/main.js';
const MUTANT = fileURLToPath(new URL('../support/shop/broken-shop.mjs', import.meta.url));

/** Runs the demo to its end. */
async function play(settings: Record<string, string>, ...args: string[]) {
  await using demo = startProgram(DEMO, settings, args);
  const ended = await demo.ended;
  return { ended, out: demo.out, err: demo.err, text: demo.out.join('\n') };
}

const withoutTimes = (lines: readonly string[]) =>
  lines.map((line) => line.replaceAll(/booked \d+\.\d s/g, 'booked N s'));

describe('npm run demo', () => {
  it('EX-13 npm run demo plays the day on Fastify and exits with 0; on Express it plays the same, and keeps running until Ctrl-C', async () => {
    await using open = startProgram(DEMO, { SHOP_ADAPTER: 'express' });
    const once = await play({ SHOP_ADAPTER: 'fastify' }, '--once');
    expect(once.ended).toEqual({ code: 0, signal: null });
    expect(once.err).toEqual([]);
    expect(once.out.filter((line) => /^ +!!/.test(line))).toEqual([]);
    expect(once.out.filter((line) => /^ +ok /.test(line)).length).toBeGreaterThan(20);
    expect(once.out.at(-1)).toMatch(/^ +total .* the ledger is right$/);
    expect(once.text).toMatch(
      /ok +all booked within one poll interval .* yes\n +measured: booked \d/,
    );

    await open.prints(/^Ctrl-C closes them/);
    const addresses = open.out.filter((line) => /^ {4}http:\S+$/.test(line));
    const [shop, emulator, console] = addresses.map((line) => line.trim());
    // Except for the two lines of addresses, which are free ports.
    expect(withoutTimes(open.out).slice(2, once.out.length)).toEqual(
      withoutTimes(once.out).slice(2),
    );
    expect((await fetch(shop!)).status).toBe(200);
    expect((await fetch(emulator!)).status).toBe(200);
    expect((await fetch(console!)).status).toBe(401);
    const [, user, password] = await open.prints(/as (\S+) with the password (\S+):$/);
    const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
    expect((await fetch(console!, { headers: { authorization } })).status).toBe(200);
    expect(await open.kill('SIGINT')).toEqual({ code: 0, signal: null });
    for (const address of [shop, emulator, console])
      await expect(fetch(address!)).rejects.toThrow();
  });

  it('npm run demo plays the day with three shops on PostgreSQL, one of which is killed, and exits with 0', async () => {
    const { ended, err, out } = await play({}, '--once', '--postgres');
    expect(ended).toEqual({ code: 0, signal: null });
    expect(err).toEqual([]);
    expect(out[1]).toMatch(/^shop +http:\S+ +\(3 on PostgreSQL\)$/);
    expect(out.filter((line) => /^ +!!/.test(line))).toEqual([]);
    expect(out.at(-1)).toMatch(/^ +total .* the ledger is right$/);
  });

  it('npm run demo ends with 1 if the shop books each payment twice or loses one', async () => {
    // How long a failing check waits. This test uses only the result at the end.
    const args = ['--once', '--wait', '1', '--shop', MUTANT];
    const [twice, lost] = await Promise.all([
      play({ SHOP_MISTAKE: 'records-twice' }, ...args),
      play({ SHOP_MISTAKE: 'loses-one' }, ...args),
    ]);
    expect([twice.ended.code, lost.ended.code]).toEqual([1, 1]);
    expect(twice.text).toMatch(/RECORDED 2 TIMES\n[^]*THE LEDGER IS WRONG/);
    expect(lost.text).toMatch(/LOST\n[^]*THE LEDGER IS WRONG/);
  });

  it('npm run demo closes shop and emulator if it is interrupted', async () => {
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
