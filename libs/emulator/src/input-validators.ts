import 'reflect-metadata';
import { applyDecorators } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsInt, IsOptional, Max, Min } from 'class-validator';

/**
 * Validates the field `limit` of a filter, which a query string contains as text. `items` names what the limit counts.
 */
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
