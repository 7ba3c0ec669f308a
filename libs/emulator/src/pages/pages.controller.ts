import {
  Controller,
  Get,
  Inject,
  NotFoundException,
  Param,
  Redirect,
  Res,
  UseGuards,
} from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { WithoutControlToken } from '../controls/control-token.guard.js';
import { SameOriginGuard } from '../http/same-origin.guard.js';
import type { PageFile } from './page-files.js';
import { PAGE_HEADERS, scriptedPage, sendPage } from './page-layout.js';

/** Injection token of the page files by name. */
export const PAGE_FILES = Symbol('PAGE_FILES');

/** Emulator only: the page of STK push prompts, the redirect from `/`, and the files that the pages load. */
@Controller()
@UseGuards(SameOriginGuard)
export class PagesController {
  constructor(@Inject(PAGE_FILES) private readonly files: ReadonlyMap<string, PageFile>) {}

  /** Leads from the address that the emulator listens on to its pages. */
  @Get()
  @Redirect('/emulator')
  root(): void {}

  @Get('emulator/stk')
  stk(@Res({ passthrough: true }) reply: FastifyReply): string {
    return sendPage(reply, scriptedPage('STK push prompts', 'stk-page.js'));
  }

  /** No control token is required: customers' checkout pages load their styles here, and no file contains data. */
  @Get('emulator/pages/:file')
  @WithoutControlToken()
  file(@Param('file') name: string, @Res({ passthrough: true }) reply: FastifyReply): Buffer {
    const file = this.files.get(name);
    if (!file) throw new NotFoundException('no such file');
    void reply.headers({ ...PAGE_HEADERS, 'content-type': file.type });
    return file.body;
  }
}
