import { Inject, Injectable } from '@nestjs/common';
import { PaymentsError } from '../payments.errors.js';
import { HandlerRegistry } from './handler.registry.js';
import type { PaymentEvent, PaymentEventContext } from './payment-event.js';
import { StrayRejections } from './stray-rejections.js';

/** Runs one handler for one event. */
@Injectable()
export class EventDispatcher {
  constructor(
    @Inject(HandlerRegistry) private readonly registry: HandlerRegistry,
    @Inject(StrayRejections) private readonly strays: StrayRejections,
  ) {}

  /**
   * Resolves once the handler of that name has succeeded.
   *
   * @throws PaymentsError `handlers_invalid` where no handler has the name, `data_invalid` where `data` fails
   *   the handler's class; and whatever the handler throws, which may be anything.
   */
  async dispatch(event: PaymentEvent, context: PaymentEventContext): Promise<void> {
    const handler = this.registry.get(context.handler);
    if (handler === undefined) {
      throw new PaymentsError(
        'handlers_invalid',
        `No handler is named "${context.handler}" any more. Give its successor that name.`,
      );
    }
    const data = handler.data ? await parseData(handler.data, event) : event.data;
    // A frozen copy each, so that no handler sees what another did to the event.
    const own = Object.freeze({ ...event, data });
    await this.strays.watch(context, () => handler.invoke(own, context));
  }
}

async function parseData(type: new () => object, event: PaymentEvent): Promise<never> {
  const data = await transform(type, event);
  // Loaded by the module of `type` long since, and slow to load for those who have no such class.
  const { validate } = await import('class-validator');
  const failures = await validate(data, { forbidUnknownValues: false });
  if (failures.length > 0) {
    const rules = failures.flatMap(({ property, constraints, children }) =>
      Object.keys(constraints ?? {})
        .concat(children?.length ? ['nested'] : [])
        .map((rule) => `${property} (${rule})`),
    );
    throw dataInvalid(type, event, rules.join(', '));
  }
  return data as never;
}

async function transform(type: new () => object, event: PaymentEvent): Promise<object> {
  const { plainToInstance } = await import('class-transformer');
  try {
    return plainToInstance(type, event.data);
  } catch {
    // A @Transform or a setter that throws, whose message may well quote the value.
    throw dataInvalid(type, event, 'it could not be transformed');
  }
}

function dataInvalid(
  { name }: new () => object,
  { eventType }: PaymentEvent,
  why: string,
): PaymentsError {
  return new PaymentsError(
    'data_invalid',
    `"data" of the ${eventType} event does not satisfy ${name}: ${why}. The event is kept: mend the class or ` +
      'the rule, then redrive it.',
  );
}
