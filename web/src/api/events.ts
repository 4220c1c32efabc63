// Server-sent events by the letter: the data of each event, lines joined; comments and other fields are dropped.

export class EventParser {
  private pending = '';
  private data: string[] = [];

  // Takes a piece of the stream, cut anywhere; returns what it completed.
  add(piece: string): string[] {
    const events: string[] = [];
    this.pending += piece;
    for (;;) {
      const end = this.pending.search(/[\r\n]/);
      if (end < 0) break;
      // A carriage return at the very end may be half of a line break.
      if (this.pending[end] === '\r' && end + 1 === this.pending.length) break;
      const width = this.pending.startsWith('\r\n', end) ? 2 : 1;
      this.takeLine(this.pending.slice(0, end), events);
      this.pending = this.pending.slice(end + width);
    }
    return events;
  }

  private takeLine(line: string, events: string[]): void {
    if (line === '') {
      if (this.data.length > 0) events.push(this.data.join('\n'));
      this.data = [];
    } else if (line === 'data') {
      this.data.push('');
    } else if (line.startsWith('data:')) {
      this.data.push(line.slice(line[5] === ' ' ? 6 : 5));
    }
  }
}
