import { applyDecorators } from '@nestjs/common';
import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  ArrayMinSize,
  IsArray,
  IsIn,
  IsInt,
  IsISO8601,
  IsObject,
  Matches,
  Max,
  Min,
  ValidateIf,
  ValidateNested,
} from 'class-validator';

/*
 * Rules for the fields of requests. Each message completes the sentence `"field" must be …`. All rules of a field have
 * the same message, which names all allowed values.
 */

/** The cursor of a list. Each store has its own form of cursors. */
export function Cursor() {
  return Matches(/^[\d.-]{1,64}$/, { message: 'the value of "next" in the previous page' });
}

/** A date, or a time with a zone. `IsISO8601` alone also allows weeks, and times without a zone. */
const DATE_OR_TIME =
  /^[12]\d{3}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/;

/** The field may be missing. `IsOptional` would also allow `null`. */
export const Optional = () => ValidateIf((_, value) => value !== undefined);

/**
 * Requires a text without control characters. A character outside the BMP, such as an emoji, counts as two, as in the
 * inbox and in the form fields of a browser.
 */
export function Text(
  max: number,
  message = `a text of 1 to ${max} characters, none of them a control character; an emoji counts as two`,
) {
  return Matches(new RegExp(`^[^\\0-\\x1f\\x7f-\\x9f]{1,${max}}$`), { message });
}

/**
 * Requires a text to search for, with any characters. The text of a delivery's error has at most 1,000 characters, too.
 */
export function AnyText() {
  return Matches(/^[^]{1,1000}$/, {
    message: 'a text of 1 to 1000 characters; an emoji counts as two',
  });
}

export function CompanyId() {
  const message = 'the id of a company: 1 to 100 letters, digits, or any of _ . ~ -';
  return Matches(/^[\w.~-]{1,100}$/, { message });
}

export function Choice(choices: readonly string[]) {
  return IsIn(choices, { message: `one of ${choices.join(', ')}` });
}

export function WholeNumber(min: number, max: number) {
  const message = `a whole number from ${min} to ${max}`;
  return applyDecorators(IsInt({ message }), Min(min, { message }), Max(max, { message }));
}

export function DateOrTime() {
  const message = 'a time such as 2026-11-20T08:00:00Z, or a date';
  return applyDecorators(
    Matches(DATE_OR_TIME, { message }),
    IsISO8601({ strict: true }, { message }),
  );
}

/** Requires a list of 1 to 1,000 objects of a class. `described` is the name of these objects in the error message. */
export function SelectionOf(type: new () => object, described: string) {
  const message = `a list of 1 to 1,000 ${described}`;
  return applyDecorators(
    IsArray({ message }),
    ArrayMinSize(1, { message }),
    ArrayMaxSize(1000, { message }),
    IsObject({ each: true, message }),
    ValidateNested({ each: true }),
    Type(() => type),
  );
}
