import type { IncomingEvent } from '../../inbox/store/inbox-store.js';
import { incoming, TestWorker } from './contract-fixtures.js';
import type { InboxUnderTest } from './contract-case.js';

/** Processes that die one after the other, and one that observes it. */
export class Crashes {
  private constructor(
    private readonly inbox: InboxUnderTest,
    readonly observer: TestWorker,
    private readonly catalogVersion: number,
  ) {}

  static async start(inbox: InboxUnderTest): Promise<Crashes> {
    const handlers = [{ name: 'book', patterns: ['*'] }];
    const observer = await TestWorker.start(await inbox.another(), handlers);
    return new Crashes(inbox, observer, (await inbox.store.catalog()).version);
  }

  event(fields: Partial<IncomingEvent> = {}): IncomingEvent {
    return incoming({ catalogVersion: this.catalogVersion, ...fields });
  }

  /** Stores an event whose delivery to `book` is a suspect: the process that claimed it died. */
  async suspect(fields: Partial<IncomingEvent> = {}): Promise<IncomingEvent> {
    const event = this.event(fields);
    await this.inbox.store.receive([event]);
    await this.die((worker) => worker.claimOne());
    return event;
  }

  /** Starts a process that claims something and dies with it. */
  async die<T>(claim: (worker: TestWorker) => Promise<T>): Promise<T> {
    const worker = await TestWorker.start(this.inbox.store);
    const claimed = await claim(worker);
    await this.observer.outlive(this.inbox.advance);
    return claimed;
  }
}
