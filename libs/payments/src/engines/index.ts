/**
 * Helpers for adapters of engines: the checks of their options, their log, their connection, the errors of
 * their client and the messages in progress. The types of an adapter are exported by `nestjs-payments`.
 *
 * @module nestjs-payments/engines
 */
export {
  checkFields,
  flag,
  mustBe,
  optional,
  optionsInvalid,
  whole,
} from '../errors/option-checks.js';
export type { OptionCheck } from '../errors/option-checks.js';
export {
  clientOptions,
  ENGINE_CHECKS,
  matching,
  requireService,
  SERVICES,
} from './engine-options.js';
export type { EngineOptions } from './engine-options.js';
export {
  endsWithin,
  engineLog,
  InProgress,
  reportUnsafe,
  SharedConnection,
  withReasonOnly,
} from './engine-connection.js';
