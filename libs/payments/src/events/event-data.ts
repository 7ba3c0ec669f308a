import { PaymentsError } from '../errors/payments-error.js';
import type { PaymentHandler } from './handler-registry.js';
import type { PaymentEvent } from './payment-event.js';

type DataClass = new () => object;

/** The optional packages that a data class needs. */
const PACKAGES = ['class-validator', 'class-transformer'];

let loading: ReturnType<typeof load> | undefined;

async function load() {
  const [{ validate }, { plainToInstance }] = await Promise.all([
    import('class-validator'),
    import('class-transformer'),
  ]);
  return { validate, plainToInstance };
}

/**
 * Loads the packages that data classes need, if any handler has one.
 *
 * @throws PaymentsError `handlers_invalid` if they cannot be loaded. The message names the handlers, the
 *   packages and the command that installs them; the cause is the loader's error.
 */
export async function prepareDataClasses(handlers: Iterable<PaymentHandler>): Promise<void> {
  const sources = [...handlers].filter(({ data }) => data).map(({ source }) => source);
  if (sources.length === 0) return;
  try {
    await (loading ??= load());
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

/**
 * The event's `data` as an instance of the handler's data class.
 *
 * @throws PaymentsError `data_invalid` if it does not satisfy the rules of the class. The message names the
 *   fields and rules, and contains no value.
 */
export async function parseData(type: DataClass, event: PaymentEvent): Promise<never> {
  const { validate, plainToInstance } = await (loading ??= load());
  let data: object;
  try {
    data = plainToInstance(type, event.data);
  } catch {
    // A @Transform or a setter threw. Its message may contain the value.
    throw dataInvalid(type, event, 'it could not be transformed');
  }
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

function dataInvalid({ name }: DataClass, { eventType }: PaymentEvent, why: string): PaymentsError {
  return new PaymentsError(
    'data_invalid',
    `"data" of the ${eventType} event does not satisfy ${name}: ${why}. The event is kept: fix the class or ` +
      'the rule, then redrive it.',
  );
}
