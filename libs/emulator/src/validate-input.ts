import { plainToInstance } from 'class-transformer';
import type { ValidationError } from 'class-validator';
import { validateSync } from 'class-validator';
import { EmulatorInputError } from './emulator-errors.js';

/**
 * Validates the input of an operation with its DTO class, and returns an instance of the class. An operation of the
 * emulator is called over HTTP or as a method. A missing input counts as an empty object.
 *
 * @throws EmulatorInputError that names each invalid field. Unknown fields are invalid, so that a misspelt field is not
 * silently ignored.
 */
export function validateInput<T extends object>(dto: new () => T, input: unknown): T {
  const given = input ?? {};
  if (typeof given !== 'object' || Array.isArray(given)) {
    throw new EmulatorInputError(['the input must be a JSON object']);
  }
  const instance = plainToInstance(dto, given);
  const errors = validateSync(instance, { whitelist: true, forbidNonWhitelisted: true });
  if (errors.length > 0) throw new EmulatorInputError(errors.flatMap((error) => lines(error)));
  return instance;
}

function lines(error: ValidationError): string[] {
  return Object.entries(error.constraints ?? {}).map(([constraint, message]) =>
    constraint === 'whitelistValidation'
      ? `${error.property} is not a field of this input`
      : message,
  );
}
