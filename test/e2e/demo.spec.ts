import { fileURLToPath } from 'node:url';
import { describe, expect, it, jest } from '@jest/globals';
import { ShopProcess } from '../support/shop.process.js';

jest.setTimeout(60_000);

const DEMO = 'apps/demo/dist/main.js';
const MUTANT = fileURLToPath(new URL('../support/shop.mutant.mjs', import.meta.url));

async function playOnce(adapter: string) {
  await using demo = new ShopProcess(DEMO, { SHOP_ADAPTER: adapter }, ['--once']);
  const ended = await demo.ended;
  return { ended, out: demo.out, err: demo.err };
}

describe('npm run demo', () => {
  it('plays its day once and ends well, the same with the same seed, on Express and on Fastify', async () => {
    const [express, fastify] = await Promise.all(['express', 'fastify'].map(playOnce));
    for (const { ended, err, out } of [express!, fastify!]) {
      expect(ended).toEqual({ code: 0, signal: null });
      expect(err).toEqual([]);
      expect(out.filter((line) => /^ +!!/.test(line))).toEqual([]);
      expect(out.filter((line) => /^ +ok /.test(line)).length).toBeGreaterThan(20);
      expect(out.at(-1)).toMatch(/^ +total .* the ledger is right$/);
    }
    // But for the two lines of addresses, which are free ports.
    expect(express!.out.slice(2)).toEqual(fastify!.out.slice(2));
  });

  it.each([
    ['books-twice', 'BOOKED 2 TIMES'],
    ['loses-one', 'LOST'],
  ])('ends with 1 where the shop %s', async (mistake, verdict) => {
    await using demo = new ShopProcess(DEMO, { SHOP_MISTAKE: mistake }, [
      '--once',
      '--shop',
      MUTANT,
    ]);
    expect(await demo.ended).toEqual({ code: 1, signal: null });
    expect(demo.out.join('\n')).toContain(verdict);
    expect(demo.out.join('\n')).toContain('THE LEDGER IS WRONG');
  });

  it('stays up with its addresses printed, and closes shop and emulator on Ctrl-C', async () => {
    await using demo = new ShopProcess(DEMO, {});
    const [, ledger] = await demo.line(/ledger: (http:\S+)/);
    const [, controls] = await demo.line(/controls: +(http:\S+)/);
    expect((await fetch(ledger!)).status).toBe(200);
    expect((await fetch(controls!)).status).toBe(200);
    expect(await demo.kill('SIGINT')).toEqual({ code: 0, signal: null });
    await expect(fetch(ledger!)).rejects.toThrow();
    await expect(fetch(controls!)).rejects.toThrow();
  });

  it('closes shop and emulator when it is ended in the middle', async () => {
    await using demo = new ShopProcess(DEMO, {});
    const [, emulator] = await demo.line(/^emulator +(http:\S+)/);
    const [, shop] = await demo.line(/^shop +(http:\S+)/);
    expect(await demo.kill('SIGTERM')).toEqual({ code: 143, signal: null });
    await expect(fetch(emulator!)).rejects.toThrow();
    await expect(fetch(shop!)).rejects.toThrow();
  });

  it('closes the emulator and says why when the shop does not start', async () => {
    await using demo = new ShopProcess(DEMO, { SHOP_ADAPTER: 'koa' }, ['--once']);
    expect(await demo.ended).toEqual({ code: 1, signal: null });
    expect(demo.err.join('\n')).toContain('SHOP_ADAPTER must be express or fastify');
  });
});
