import type { Mutant } from '../mutant.ts';

const ENGINES = 'libs/payments/src/engines';
const SPECS = ['test/e2e/engines/gateway-and-workers.spec.ts'];

/** The handover of events to an engine and what services take from it: EN-01 to EN-11. */
export const ENGINE_MUTANTS: readonly Mutant[] = [
  {
    promise: 'EN-01',
    fault: 'a handover is done before the engine has accepted the event',
    file: `${ENGINES}/event-relay.ts`,
    replace: 'await relay.publish(',
    by: 'void relay.publish(',
    specs: SPECS,
  },
  {
    promise: 'EN-02',
    fault: 'signs the body as text, so that a receiver cannot verify its bytes',
    file: `${ENGINES}/engine-message.ts`,
    replace: 'signature: signBody(body, key)',
    by: 'signature: signBody(body.subarray(1), key)',
    specs: SPECS,
  },
  {
    promise: 'EN-03',
    fault: 'acknowledges a message whose event could not be stored',
    file: `${ENGINES}/event-consumer.ts`,
    replace: "return { action: 'retry', afterMs };",
    by: "return { action: 'acknowledge' };",
    specs: SPECS,
  },
  {
    promise: 'EN-04',
    fault: 'loses the company of an event',
    file: `${ENGINES}/engine-message.ts`,
    replace: 'return new VerifiedEvent(company, parseEnvelope(raw)',
    by: "return new VerifiedEvent('other', parseEnvelope(raw)",
    specs: SPECS,
  },
  {
    promise: 'EN-05',
    fault: 'stores a message whose signature does not match',
    file: `${ENGINES}/engine-message.ts`,
    replace: 'if (verify) requireMatch(body, parseSignatures(signature), signingKeys);',
    by: 'if (verify) parseSignatures(signature);',
    specs: SPECS,
  },
  {
    promise: 'EN-06',
    fault: 'each event has a key of its own',
    file: `${ENGINES}/engine-message.ts`,
    replace: 'subject === null ? id : `${company}/${subject}`',
    by: 'id',
    specs: SPECS,
  },
  {
    promise: 'EN-07',
    fault: 'does not start while the engine is away',
    file: `${ENGINES}/engine-connection.ts`,
    replace: "if (error instanceof PaymentsError && error.code === 'engine_unsafe') throw error;",
    by: 'throw error;',
    specs: SPECS,
  },
  {
    promise: 'EN-08',
    fault: 'hands nothing over',
    file: `${ENGINES}/event-relay.ts`,
    replace: "patterns: ['*'],",
    by: 'patterns: [],',
    specs: SPECS,
  },
  {
    promise: 'EN-09',
    fault: 'starts although a setting of the engine loses events',
    file: `${ENGINES}/engine-connection.ts`,
    replace: "error.code === 'engine_unsafe') throw error;",
    by: "error.code === 'options_invalid') throw error;",
    specs: SPECS,
  },
  {
    promise: 'EN-10',
    fault: 'leaves the connection to the engine open',
    file: `${ENGINES}/event-consumer.ts`,
    replace: 'await this.source?.close?.();',
    by: '',
    specs: SPECS,
  },
  {
    promise: 'EN-11',
    fault: 'reports an engine that does not answer as connected',
    file: `${ENGINES}/engine-monitor.ts`,
    replace: 'return { connected: false };',
    by: 'return { connected: true };',
    specs: SPECS,
  },
  {
    promise: 'EN-11',
    fault: 'starts a new trace in the service',
    file: `${ENGINES}/engine-message.ts`,
    replace: 'traceparent === undefined ? {} : { traceparent }',
    by: '{}',
    specs: SPECS,
  },
];
