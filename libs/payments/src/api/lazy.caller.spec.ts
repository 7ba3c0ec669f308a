import { describe, expect, it } from '@jest/globals';
import type { CallSpec } from './call.request.js';
import type { Caller } from './caller.js';
import { LazyCaller } from './lazy.caller.js';

const SPEC: CallSpec = { method: 'GET', path: '/v1/things', options: {}, expect: 'anything' };

/** A caller that tells what is done with it, and that loads when the test says so. */
function lazily() {
  const log: string[] = [];
  const loads: PromiseWithResolvers<Caller>[] = [];
  const caller: Caller = {
    call: async (company) => {
      log.push(`call for ${company}`);
      return { status: 204, headers: {}, body: undefined as never, requestId: undefined };
    },
    close: async () => void log.push('closed'),
  };
  const lazy = new LazyCaller(() => {
    const load = Promise.withResolvers<Caller>();
    loads.push(load);
    return load.promise;
  });
  return { lazy, caller, log, loads };
}

describe('LazyCaller', () => {
  it('loads with the first call, once for all that come', async () => {
    const { lazy, caller, log, loads } = lazily();
    expect(loads).toHaveLength(0);
    const calls = Promise.all([lazy.call('one', SPEC), lazy.call('two', SPEC)]);
    loads[0]!.resolve(caller);
    expect(await calls).toMatchObject([{ status: 204 }, { status: 204 }]);
    await lazy.call('three', SPEC);
    expect(log).toEqual(['call for one', 'call for two', 'call for three']);
    expect(loads).toHaveLength(1);
  });

  it('loads when it is told to prepare, and says why it could not to those who call', async () => {
    const { lazy, caller, loads } = lazily();
    lazy.prepare();
    const call = lazy.call('one', SPEC);
    loads[0]!.reject(new Error('a file is gone'));
    await expect(call).rejects.toThrow('a file is gone');
    // It may be there the next time.
    const again = lazy.call('one', SPEC);
    loads[1]!.resolve(caller);
    expect(await again).toMatchObject({ status: 204 });
    expect(loads).toHaveLength(2);
  });

  it('loads nothing once it is closed', async () => {
    const { lazy, loads } = lazily();
    await lazy.close();
    lazy.prepare();
    await expect(lazy.call('one', SPEC)).rejects.toMatchObject({ code: 'aborted' });
    expect(loads).toHaveLength(0);
  });

  it('closes what was still being loaded', async () => {
    const { lazy, caller, log, loads } = lazily();
    lazy.prepare();
    const closed = lazy.close();
    loads[0]!.resolve(caller);
    await closed;
    expect(log).toEqual(['closed']);
  });

  it('closes, though what it was to close could not be loaded', async () => {
    const { lazy, loads } = lazily();
    lazy.prepare();
    const closed = lazy.close();
    loads[0]!.reject(new Error('a file is gone'));
    await expect(closed).resolves.toBeUndefined();
  });
});
