import { beforeEach, describe, expect, it } from '@jest/globals';
import { FakeRuntime } from '../../../../../../test/support/time/fake-runtime.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { ClaimCursors } from './claim.js';

describe('ClaimCursors', () => {
  let runtime: FakeRuntime;
  let cursors: ClaimCursors;
  let searches: number;
  let searchMs: number;
  beforeEach(() => {
    runtime = new FakeRuntime();
    searches = 0;
    searchMs = 0;
    const source = {
      query: () => {
        searches += 1;
        runtime.advance(searchMs);
        return Promise.resolve([]);
      },
    } as unknown as ConnectionSource;
    cursors = new ClaimCursors(source, 'payments', runtime, () => {});
  });

  const slowSearch = async (ms: number): Promise<void> => {
    searchMs = ms;
    cursors.advance('ledger', 5000, ms, cursors.version);
    await Promise.resolve();
  };

  it('claims start at the first due delivery while searches are fast', async () => {
    await slowSearch(9);
    expect(cursors.startsOf(['ledger'])).toEqual([null]);
    expect(searches).toBe(0);
  });

  it('IN-39 claims start one second before the cursor after two slow searches', async () => {
    await slowSearch(20);
    expect(searches).toBe(1);
    expect(cursors.startsOf(['ledger', 'other'])).toEqual([4000, null]);
  });

  it('IN-39 a search before the cursors starts 5 s after the previous search, even if that took 2 s', async () => {
    await slowSearch(2000);
    runtime.advance(4999);
    cursors.startsOf(['ledger']);
    expect(searches).toBe(1);
    runtime.advance(1);
    cursors.startsOf(['ledger']);
    expect(searches).toBe(2);
  });

  it('a search before the cursors starts no sooner than 3 s after the previous search', async () => {
    await slowSearch(10);
    runtime.advance(2999);
    cursors.startsOf(['ledger']);
    expect(searches).toBe(1);
    runtime.advance(1);
    cursors.startsOf(['ledger']);
    expect(searches).toBe(2);
  });
});
