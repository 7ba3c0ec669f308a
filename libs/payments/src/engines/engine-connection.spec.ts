import { describe, expect, it } from '@jest/globals';
import { eventually } from '../../../../test/support/time/waiting.js';
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
  it('EN-07 concurrent calls share one connection, which is disconnected once, and a call after the disconnection connects again', async () => {
    const { ended, shared } = numbered();
    const [one, other] = await Promise.all([shared.get(), shared.get()]);
    expect(other).toBe(one);
    await shared.end(one);
    expect(await shared.get()).toEqual({ number: 2 });
    await shared.end(one);
    expect(await shared.get()).toEqual({ number: 2 });
    expect(ended).toEqual([1]);
  });

  it.each<[string, (end: (lost: object) => void) => object]>([
    [
      'refused',
      () => {
        throw new Error('refused');
      },
    ],
    [
      'lost',
      (end) => {
        const lost = {};
        end(lost);
        return lost;
      },
    ],
  ])(
    'EN-07 if a connection was %s while it was opened, a busy gateway connects again once, about a second later',
    async (reason, fail) => {
      let attempts = 0;
      const shared = new SharedConnection<object>(
        async () => {
          attempts += 1;
          return attempts === 1 ? fail((lost) => void shared.end(lost)) : { attempts };
        },
        () => {},
      );
      for (let call = 0; call < 100; call += 1) await expect(shared.get()).rejects.toThrow(reason);
      expect(attempts).toBe(1);
      expect(await eventually(() => shared.get())).toEqual({ attempts: 2 });
    },
  );

  it('EN-10 close() does not wait for a server that does not answer, and ends a connection that opens later', async () => {
    const answer = Promise.withResolvers<object>();
    const ended: object[] = [];
    const shared = new SharedConnection(
      () => answer.promise,
      (connection) => ended.push(connection),
    );
    const opening = expect(shared.get()).rejects.toThrow('lost');
    await shared.close();
    const connection = {};
    answer.resolve(connection);
    await opening;
    expect(ended).toEqual([connection]);
    await expect(shared.get()).rejects.toThrow('closed');
  });
});
