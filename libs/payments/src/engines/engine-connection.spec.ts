import { describe, expect, it } from '@jest/globals';
import { SharedConnection } from './engine-connection.js';

/** Connections with numbers, and the numbers of those that were disconnected. */
function numbered() {
  const ended: number[] = [];
  let count = 0;
  const connect = async () => ({ number: (count += 1) });
  const disconnect = ({ number }: { readonly number: number }) => ended.push(number);
  return { ended, shared: new SharedConnection(connect, disconnect) };
}

describe('SharedConnection', () => {
  it('EN-07 calls at the same time share one connection, and a call after its end connects again', async () => {
    const { ended, shared } = numbered();
    const [one, other] = await Promise.all([shared.get(), shared.get()]);
    expect(other).toBe(one);
    await shared.end(one);
    expect(await shared.get()).toEqual({ number: 2 });
    await shared.end(one);
    expect(await shared.get()).toEqual({ number: 2 });
    expect(ended).toEqual([1, 1]);
  });

  it('EN-07 the next call connects after a connection that was refused, or that was lost while it was opened', async () => {
    const results: (() => { readonly number: number })[] = [
      () => {
        throw new Error('refused');
      },
      () => {
        const lost = { number: 2 };
        void shared.end(lost);
        return lost;
      },
      () => ({ number: 3 }),
    ];
    const shared = new SharedConnection(
      async () => results.shift()!(),
      () => {},
    );
    await expect(shared.get()).rejects.toThrow('refused');
    await expect(shared.get()).rejects.toThrow('lost');
    expect(await shared.get()).toEqual({ number: 3 });
  });

  it('EN-10 close() ends a connection that is about to open, and later calls reject', async () => {
    const { ended, shared } = numbered();
    const opening = shared.get();
    await shared.close();
    expect(ended).toEqual([1]);
    await opening;
    await expect(shared.get()).rejects.toThrow('closed');
  });
});
