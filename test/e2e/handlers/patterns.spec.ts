import { expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnPaymentEvent } from 'nestjs-payments';
import {
  webhookRequest,
  onOneAdapter,
  Recorder,
} from '../../support/webhook/handler-application.js';

@Injectable()
class Patterns extends Recorder {
  @OnPaymentEvent('transaction.completed')
  exact(): void {
    this.note('exact');
  }

  @OnPaymentEvent(['transaction.completed', 'payout.settled'])
  list(): void {
    this.note('list');
  }

  @OnPaymentEvent('transaction.*')
  family(): void {
    this.note('family');
  }

  @OnPaymentEvent('*')
  all(): void {
    this.note('all');
  }

  @OnPaymentEvent('transaction.reversed')
  @OnPaymentEvent(['payout.settled', 'transaction.completed'])
  @OnPaymentEvent('transaction.*')
  stacked(): void {
    this.note('stacked');
  }
}

class Base extends Recorder {
  @OnPaymentEvent('a')
  inherited(): void {
    this.note(`inherited by ${this.constructor.name}`);
  }

  @OnPaymentEvent('a')
  replaced(): void {
    this.note('the base');
  }

  @OnPaymentEvent('a')
  silenced(): void {
    this.note('silenced');
  }
}

@Injectable()
class First extends Base {
  @OnPaymentEvent('b')
  override replaced(): void {
    this.note('the override');
  }

  override silenced(): void {
    this.note('the override without a decorator');
  }
}

@Injectable()
class Second extends Base {
  @OnPaymentEvent('a', { name: 'second' })
  override inherited(): void {
    super.inherited();
  }
}

/** A class to which a mixin copied the decorated method of another class. */
@Injectable()
class Mixed extends Recorder {}
Object.defineProperty(Mixed.prototype, 'exact', {
  ...Object.getOwnPropertyDescriptor(Patterns.prototype, 'exact'),
});

const MATCHES: [string, string[]][] = [
  ['transaction.completed', ['all', 'exact', 'family', 'list', 'stacked']],
  ['payout.settled', ['all', 'list', 'stacked']],
  ['transaction.reversed', ['all', 'family', 'stacked']],
  ['transaction.refund.partial', ['all', 'family', 'stacked']],
  ['transaction.completed.again', ['all', 'family', 'stacked']],
  ['transaction', ['all']],
  ['transactions.completed', ['all']],
  ['Transaction.Completed', ['all']],
];

onOneAdapter('patterns and inheritance of handlers', (start) => {
  it('WH-18 the application runs a handler once if one or more of its patterns match the event type', async () => {
    await using app = await start({ providers: [Patterns] });
    const { ran } = app.app.get(Patterns);
    for (const [eventType, names] of MATCHES) {
      ran.length = 0;
      expect(await app.send(webhookRequest({ eventType }))).toMatchObject({ status: 200 });
      expect([eventType, ...ran.toSorted()]).toEqual([eventType, ...names]);
    }
  });

  it('WH-18 the application runs an inherited handler on each subclass, and an override only for its own event types', async () => {
    await using app = await start({ providers: [First, Second] });
    await app.send(webhookRequest({ eventType: 'a' }));
    expect(app.app.get(First).ran).toEqual(['inherited by First']);
    expect(app.app.get(Second).ran.toSorted()).toEqual([
      'inherited by Second',
      'silenced',
      'the base',
    ]);
    await app.send(webhookRequest({ eventType: 'b' }));
    expect(app.app.get(First).ran).toEqual(['inherited by First', 'the override']);
  });

  it('WH-18 the application runs a handler that a mixin copied to a class', async () => {
    await using app = await start({ providers: [Mixed] });
    expect(await app.send(webhookRequest())).toMatchObject({ status: 200 });
    expect(app.app.get(Mixed).ran).toEqual(['exact']);
  });
});
