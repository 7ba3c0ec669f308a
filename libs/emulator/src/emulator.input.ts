import { plainToInstance } from 'class-transformer';
import type { ValidationError } from 'class-validator';
import { validateSync } from 'class-validator';
import { EmulatorInputError } from './emulator.errors.js';

/**
 * Checks a control's input, from HTTP or from code, against its DTO class and answers an instance.
 * Nothing given counts as an empty object.
 *
 * @throws EmulatorInputError naming each field at fault; unknown fields are faults too, so that a
 * misspelt option never silently does nothing.
 */
export function checkInput<T extends object>(dto: new () => T, input: unknown): T {
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
