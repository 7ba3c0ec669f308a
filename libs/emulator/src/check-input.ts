import 'reflect-metadata';
import { applyDecorators } from '@nestjs/common';
import { plainToInstance, Type } from 'class-transformer';
import type { ValidationError } from 'class-validator';
import { IsInt, IsOptional, Max, Min, validateSync } from 'class-validator';
import { EmulatorInputError } from './emulator-errors.js';

/**
 * Validates the input of a control with its DTO class. A control is an operation of the emulator that is called over HTTP or
 * as a method. Returns an instance of the class. A missing input counts as an empty object.
 *
 * @throws EmulatorInputError that names each invalid field. Unknown fields are invalid, so that a misspelt field is not
 * silently ignored.
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

/** For the field `limit` of a filter, which a query contains as text. `items` names what the limit counts. */
export function IsLimit(items: string, max: number): PropertyDecorator {
  const message = `limit must be a whole number of ${items} from 1 to ${max}`;
  return applyDecorators(
    IsOptional(),
    Type(() => Number),
    IsInt({ message }),
    Min(1, { message }),
    Max(max, { message }),
  );
}

function lines(error: ValidationError): string[] {
  return Object.entries(error.constraints ?? {}).map(([constraint, message]) =>
    constraint === 'whitelistValidation'
      ? `${error.property} is not a field of this input`
      : message,
  );
}
