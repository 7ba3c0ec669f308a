import { describe, expect, it } from '@jest/globals';
import { AttemptCommit } from './attempt.js';
import type { InboxStore } from '../store/inbox-store.js';

const LEASE = { company: 'c', id: 'e', handler: 'h', token: 1, seq: 1 };

/** The commit of an attempt, with a store whose `commit` the test defines. */
function at(commit: InboxStore['commit']): AttemptCommit {
  return new AttemptCommit({ commit } as InboxStore, LEASE);
}

const committing: InboxStore['commit'] = async (_lease, work) => ({
  result: await work(null),
  nextDue: true,
});
const failing: InboxStore['commit'] = async () => {
  throw new Error('down');
};

describe('AttemptCommit', () => {
  it('commit() passes the lease to the store and the transaction to its function, and returns the result of the function', async () => {
    const given: unknown[] = [];
    const commit = at(async (lease, work) => {
      given.push(lease);
      return { result: await work('the transaction'), nextDue: true };
    });
    expect(await commit.commit((tx: unknown) => `in ${String(tx)}`)).toBe('in the transaction');
    expect(given).toEqual([LEASE]);
    expect(commit.done).toBe(true);
    expect(commit.nextDue).toBe(true);
  });

  it('IN-21 a second commit is rejected, both during and after the first commit', async () => {
    const commit = at(committing);
    const first = commit.commit(() => 1);
    await expect(commit.commit(() => 2)).rejects.toMatchObject({ code: 'commit_rejected' });
    expect(await first).toBe(1);
    await expect(commit.commit(() => 3)).rejects.toMatchObject({ code: 'commit_rejected' });
  });

  it('IN-21 after a commit that rejected or threw, another commit is allowed', async () => {
    const throwing: InboxStore['commit'] = () => {
      throw new Error('down');
    };
    for (const broken of [failing, throwing]) {
      let store = broken;
      const commit = at((lease, work) => store(lease, work));
      await expect(commit.commit(() => 1)).rejects.toThrow('down');
      expect(commit.done).toBe(false);
      store = committing;
      expect(await commit.commit(() => 2)).toBe(2);
      expect(commit.done).toBe(true);
    }
  });

  it('close() waits for a commit that the handler does not await, and throws the error of this commit', async () => {
    let end = (): void => {};
    const slow = new Promise<void>((resolve) => (end = resolve));
    const commit = at(async (_lease, work) => {
      await slow;
      return { result: await work(null), nextDue: false };
    });
    void commit.commit(() => 1);
    const closed = commit.close();
    expect(commit.done).toBe(false);
    end();
    await closed;
    expect(commit.done).toBe(true);

    const lost = at(failing);
    void lost.commit(() => 1).catch(() => {});
    await expect(lost.close()).rejects.toThrow('down');
    expect(lost.done).toBe(false);
  });

  it('a commit after close() is rejected', async () => {
    const commit = at(committing);
    await commit.close();
    const late = commit.commit(() => 1);
    await expect(late).rejects.toMatchObject({ code: 'commit_rejected' });
    await expect(late).rejects.toThrow(/has returned/);
  });
});
