import { Injectable } from '@nestjs/common';
import { ModuleLogger } from '../errors/module-log.js';
import { describeError, errorCodeOf, framesOf, PaymentsError } from '../errors/payments-error.js';
import { guard } from '../errors/unhandled-rejections.js';
import { HandlerRegistry, matchesPattern } from './handler-registry.js';
import type { PaymentHandler } from './handler-registry.js';
import type { PaymentEvent, PaymentEventContext } from './payment-event.js';
import { pathsOf } from './standard-schema.js';
import type { StandardSchema } from './standard-schema.js';

/**
 * The error for a delivery with an event type that the handler in this process does not handle. During a deployment,
 * two versions of a handler can run at the same time, and the delivery was stored for the other version.
 */
export class OtherVersionError extends PaymentsError {
  /** Whether `thrown` is an OtherVersionError. Never throws. */
  static is(thrown: unknown): thrown is OtherVersionError {
    return errorCodeOf(thrown) === 'handlers_invalid' && thrown instanceof OtherVersionError;
  }

  constructor(
    handler: string,
    readonly eventType: string,
  ) {
    super(
      'handlers_invalid',
      `The handler "${handler}" of this process does not handle the event type "${eventType}", but another version of ` +
        'the handler does or did. Add the type to its @OnPaymentEvent, or skip the delivery.',
    );
  }
}

@Injectable()
export class EventDispatcher {
  readonly #logger = new ModuleLogger('PaymentHandlers');

  constructor(private readonly registry: HandlerRegistry) {}

  /**
   * @throws PaymentsError `handlers_invalid` if no handler has the name, or the handler does not handle the event's
   *   type ({@link OtherVersionError}); `data_invalid` if `event.data` fails the rules of the handler's data class, or
   *   does not match its schema.
   *   Also rejects with any value that the handler throws.
   */
  async dispatch(event: PaymentEvent, context: PaymentEventContext): Promise<void> {
    const handler = this.registry.get(context.handler);
    if (handler === undefined) {
      throw new PaymentsError(
        'handlers_invalid',
        `This application has no payment handler named "${context.handler}". If the handler was renamed, give it that ` +
          "name: @OnPaymentEvent(…, { name: '…' }).",
      );
    }
    if (!handler.patterns.some((pattern) => matchesPattern(pattern, event.eventType))) {
      throw new OtherVersionError(handler.name, event.eventType);
    }
    await guard(
      (reason) => this.#logRejection(reason, event, context),
      async () => {
        const { schema, data: type } = handler;
        const checked = schema ? validateData(schema, event) : type && parseData(type, event);
        const data = checked ? await checked : event.data;
        // The time limit may have passed during the check of the data. The handler must not run at the same time as the
        // next attempt.
        if (checked) context.signal.throwIfAborted();
        // Each handler gets a frozen copy, so that no handler sees changes that another handler made to the event.
        const copy = Object.freeze({ ...event, data });
        await handler.invoke(copy, context);
      },
    );
  }

  #logRejection(
    reason: unknown,
    { id }: PaymentEvent,
    { handler, company }: PaymentEventContext,
  ): void {
    this.#logger.error(
      `Handler ${handler} (company ${company}) did not await a promise, which rejected: ${describeError(reason)}. ` +
        `This error does not change the outcome of the attempt. Await the promise.${framesOf(reason)}`,
      { id, company, handler },
    );
  }
}

type DataClass = new () => object;

const PACKAGES = ['class-validator', 'class-transformer'];

let loading: ReturnType<typeof loadPackages> | undefined;

async function loadPackages() {
  const [{ validate }, { plainToInstance }] = await Promise.all([
    import('class-validator'),
    import('class-transformer'),
  ]);
  return { validate, plainToInstance };
}

/** @throws PaymentsError `handlers_invalid` if class-validator or class-transformer cannot be loaded */
export async function prepareDataClasses(handlers: Iterable<PaymentHandler>): Promise<void> {
  const sources = [...handlers].filter(({ data }) => data).map(({ source }) => source);
  if (sources.length === 0) return;
  try {
    await (loading ??= loadPackages());
  } catch (error) {
    loading = undefined;
    throw new PaymentsError(
      'handlers_invalid',
      `@OnPaymentEvent(…, { data }) on ${sources.join(', ')} needs the packages ${PACKAGES.join(' and ')}, and ` +
        `they cannot be loaded. Run: npm install ${PACKAGES.join(' ')}`,
      { cause: error },
    );
  }
}

/** @throws PaymentsError `data_invalid`. The message names the fields and rules, and contains no value. */
async function parseData(type: DataClass, event: PaymentEvent): Promise<never> {
  const { validate, plainToInstance } = await (loading ??= loadPackages());
  let data: object;
  try {
    data = plainToInstance(type, event.data);
  } catch {
    // The error that a @Transform or a setter threw may contain the value, so it does not become the `cause`.
    throw dataInvalid(type.name, event, 'it could not be transformed');
  }
  const failures = await validate(data, { forbidUnknownValues: false });
  if (failures.length > 0) {
    const rules = failures.flatMap(({ property, constraints, children }) =>
      Object.keys(constraints ?? {})
        .concat(children?.length ? ['nested'] : [])
        .map((rule) => `${property} (${rule})`),
    );
    throw dataInvalid(type.name, event, rules.join(', '));
  }
  return data as never;
}

/** Maximum number of paths in a message. */
const MAX_PATHS = 20;

/** @throws PaymentsError `data_invalid`. The message names the paths, and contains no value. */
async function validateData(schema: StandardSchema<object>, event: PaymentEvent): Promise<never> {
  let paths: string[];
  try {
    const result = await schema['~standard'].validate(event.data);
    if (!result.issues) return result.value as never;
    paths = pathsOf(result.issues);
  } catch {
    // The error that a transformation threw may contain the value, so it does not become the `cause`.
    throw dataInvalid('its schema', event, 'it could not be validated');
  }
  const listed = paths.slice(0, MAX_PATHS).join(', ') || 'data';
  const more = paths.length > MAX_PATHS ? ` and ${paths.length - MAX_PATHS} more` : '';
  throw dataInvalid('its schema', event, `${listed}${more}`);
}

function dataInvalid(rules: string, { eventType }: PaymentEvent, failure: string): PaymentsError {
  return new PaymentsError(
    'data_invalid',
    `"data" of the ${eventType} event does not satisfy ${rules}: ${failure}. The inbox keeps the event: fix the class, ` +
      'the rule or the schema, then redrive the event.',
  );
}
