// Markdown on show. What is far from the window stands there as plain text until it comes near, so that a conversation of
// any length opens at once.
import type { JSX } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { LiveAnswer } from '../state/live_answer';
import { announce } from '../state/app';
import { MarkdownView } from '../text/markdown_view';

const MARGIN = '1200px';

function whenNear(element: HTMLElement, run: () => void): () => void {
  const observer = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      run();
    },
    { root: element.closest('.thread'), rootMargin: MARGIN },
  );
  observer.observe(element);
  return () => observer.disconnect();
}

function showComplete(element: HTMLElement, text: string): () => void {
  element.textContent = text;
  element.classList.add('is-plain');
  return whenNear(element, () => {
    element.classList.remove('is-plain');
    new MarkdownView(element).update(text, true);
  });
}

// At most once a frame, and never more than a fifth of the time.
function follow(element: HTMLElement, answer: LiveAnswer): () => void {
  element.classList.remove('is-plain');
  const view = new MarkdownView(element, announce);
  let isDue = false;
  let timer = 0;
  let rest = 0;
  const draw = (): void => {
    isDue = false;
    const began = performance.now();
    view.update(answer.message.content, false);
    rest = (performance.now() - began) * 4;
  };
  const schedule = (): void => {
    if (isDue) return;
    isDue = true;
    timer = window.setTimeout(() => requestAnimationFrame(draw), rest);
  };
  draw();
  const leave = answer.subscribe(schedule);
  return () => {
    leave();
    clearTimeout(timer);
    isDue = true;
    view.update(answer.message.content, false);
    view.tellRest();
  };
}

export function Prose({ text, answer }: { text: string; answer: LiveAnswer | undefined }): JSX.Element {
  const element = useRef<HTMLDivElement>(null);
  const shown = answer ? null : text;
  useLayoutEffect(() => {
    if (answer) return follow(element.current!, answer);
    return showComplete(element.current!, text);
  }, [answer, shown]);
  return <div class="prose" ref={element} />;
}
