import { describe, expect, it } from '@jest/globals';
import { TestRuntime } from './test-runtime.js';

describe('TestRuntime', () => {
  it('AP-13 TestRuntime advances both clocks only when the test calls advance()', async () => {
    const runtime = new TestRuntime({ now: new Date('2026-03-01T00:00:00Z'), random: 0 });
    expect([runtime.now(), runtime.random()]).toEqual([Date.UTC(2026, 2, 1), 0]);
    await runtime.advance(1500);
    expect(runtime.now()).toBe(Date.UTC(2026, 2, 1) + 1500);
    expect(runtime.monotonic()).toBe(1500);
  });

  it('AP-13 TestRuntime runs due timers in the order of their times, and sets the clock to each time', async () => {
    const runtime = new TestRuntime();
    const ran: string[] = [];
    const timer = (ms: number, name: string) =>
      runtime.schedule(ms, () => ran.push(`${name} at ${runtime.monotonic()}`));
    timer(300, 'c');
    timer(100, 'a');
    timer(100, 'b');
    timer(301, 'late');
    timer(50, 'cancelled')();
    await runtime.advance(300);
    expect(ran).toEqual(['a at 100', 'b at 100', 'c at 300']);
  });

  it('AP-13 TestRuntime lets promise callbacks run between timers, and runs the timers that they start', async () => {
    const runtime = new TestRuntime();
    const ran: number[] = [];
    const again = async (): Promise<void> => {
      ran.push(runtime.monotonic());
      for (let index = 0; index < 100; index += 1) await Promise.resolve();
      runtime.schedule(100, () => void again());
    };
    void again();
    await runtime.advance(350);
    expect(ran).toEqual([0, 100, 200, 300]);
  });
});
