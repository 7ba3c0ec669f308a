import { describe, expect, it } from '@jest/globals';
import { FakeRuntime } from '../../../../../../test/support/time/fake-runtime.js';
import { ClaimCursors } from './claim.js';

describe('ClaimCursors', () => {
  const afterSearchOf = (ms: number): { cursors: ClaimCursors; runtime: FakeRuntime } => {
    const runtime = new FakeRuntime();
    const cursors = new ClaimCursors(runtime);
    expect(cursors.startFullSearch()).toBe(true);
    cursors.advance('ledger', 5000);
    cursors.endFullSearch([0, ms]);
    return { cursors, runtime };
  };

  it('claims start at the first due delivery while searches are fast', () => {
    const { cursors } = afterSearchOf(9);
    expect(cursors.startsOf(['ledger'])).toEqual([null]);
    expect(cursors.startFullSearch()).toBe(true);
  });

  it('IN-39 claims start one second before the cursor after a slow search', () => {
    const { cursors } = afterSearchOf(10);
    expect(cursors.startsOf(['ledger', 'other'])).toEqual([4000, null]);
    cursors.advance('ledger', 7000);
    expect(cursors.startsOf(['ledger', 'other'])).toEqual([6000, null]);
  });

  it('IN-39 while searches are slow, one claim every five seconds searches from the first due delivery', () => {
    const { cursors, runtime } = afterSearchOf(2000);
    runtime.advance(4999);
    expect(cursors.startFullSearch()).toBe(false);
    runtime.advance(1);
    expect([cursors.startFullSearch(), cursors.startFullSearch()]).toEqual([true, false]);
    cursors.endFullSearch([1]);
    expect(cursors.startsOf(['ledger'])).toEqual([null]);
  });
});
