import { describe, expect, it } from '@jest/globals';
import { FakeRuntime } from '../../../../../../test/support/time/fake-runtime.js';
import { Semaphore } from './commit.js';

const tooLate = () => new Error('waited too long');

describe('Semaphore', () => {
  it('Semaphore starts tasks in the order in which they requested a permit', async () => {
    const semaphore = new Semaphore(2, 100, tooLate, new FakeRuntime());
    const started: string[] = [];
    const acquire = async (name: string) => {
      const release = await semaphore.acquire();
      started.push(name);
      return release;
    };
    const [first, second, third] = ['a', 'b', 'c', 'd'].map(acquire);
    const release = await first!;
    await second;
    expect(started).toEqual(['a', 'b']);
    release();
    await third;
    expect(started).toEqual(['a', 'b', 'c']);
  });

  it('Semaphore passes a returned permit to a waiting task before a new task', async () => {
    const semaphore = new Semaphore(1, 100, tooLate, new FakeRuntime());
    const release = await semaphore.acquire();
    const waiting = semaphore.acquire();
    release();
    let isTaken = false;
    const late = semaphore.acquire().then(() => (isTaken = true));
    const releaseWaiting = await waiting;
    expect(isTaken).toBe(false);
    releaseWaiting();
    await late;
  });

  it('Semaphore rejects a task that waits longer than maxWaitMs, and keeps the permit for the next task', async () => {
    const runtime = new FakeRuntime();
    const semaphore = new Semaphore(1, 100, tooLate, runtime);
    const release = await semaphore.acquire();
    const waiting = semaphore.acquire();
    runtime.advance(100);
    await expect(waiting).rejects.toThrow('waited too long');
    release();
    await semaphore.acquire();
    expect(runtime.pending).toBe(0);
  });
});
