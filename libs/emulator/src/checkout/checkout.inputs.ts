import { IsOptional, IsString, MaxLength } from 'class-validator';

/** The form that holds the phone number; the desk says what is wrong with a number. */
export class PhoneForm {
  /** Default: none. */
  @IsOptional()
  @IsString({ message: 'phoneNumber must be text' })
  @MaxLength(200, { message: 'phoneNumber must be at most 200 characters' })
  phoneNumber?: string | undefined;
}

/** The form that holds the one-time code. */
export class CodeForm {
  /** Default: none. */
  @IsOptional()
  @IsString({ message: 'code must be text' })
  @MaxLength(200, { message: 'code must be at most 200 characters' })
  code?: string | undefined;
}
