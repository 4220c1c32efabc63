// Line icons of one weight. All are decoration: the control around them has the name.
import type { JSX } from 'preact';

const paths = {
  plus: 'M12 5v14M5 12h14',
  send: 'M12 19V5M5.5 11.5 12 5l6.5 6.5',
  stop: 'M7.5 7.5h9v9h-9z',
  menu: 'M4 7h16M4 12h16M4 17h16',
  close: 'M6 6l12 12M18 6 6 18',
  sliders: 'M4 7h9m4 0h3M4 17h3m4 0h9M15 5v4M9 15v4',
  gear: 'M12 9.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6zM12 3v2.6M12 18.4V21M3 12h2.6M18.4 12H21M5.6 5.6l1.9 1.9M16.5 16.5l1.9 1.9M18.4 5.6l-1.9 1.9M7.5 16.5l-1.9 1.9',
  pencil: 'M5 19l1-4L16 5l3 3L9 18zM14 7l3 3',
  trash: 'M5 7h14M10 7V5h4v2M7 7l1 12h8l1-12M10.5 10.5v5M13.5 10.5v5',
  copy: 'M9 9h10v10H9zM15 9V5H5v10h4',
  again: 'M19 12a7 7 0 1 1-2.2-5.1M19 4v4h-4',
  forward: 'M5 6l7 6-7 6zM13 6l7 6-7 6z',
  left: 'M14.5 6l-6 6 6 6',
  right: 'M9.5 6l6 6-6 6',
  down: 'M12 5v14M5.5 12.5 12 19l6.5-6.5',
  download: 'M12 4v11M7 10.5l5 5 5-5M5 20h14',
  search: 'M11 5a6 6 0 1 0 0 12 6 6 0 0 0 0-12zM15.5 15.5 20 20',
  clip: 'M19 11.5l-7.2 7.2a4.2 4.2 0 0 1-6-6l7.7-7.7a2.8 2.8 0 0 1 4 4l-7.6 7.6a1.4 1.4 0 0 1-2-2l6.8-6.8',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  file: 'M7 4h7l4 4v12H7zM14 4v4h4',
  tool: 'M14.5 6.5a4 4 0 0 1 5-1.2L16.8 8l1.2 2 2.6-.6A4 4 0 0 1 15 13l-7 7-3-3 7-7a4 4 0 0 1 2.5-3.5z',
};

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}

export function Bird({ size }: { size: number }): JSX.Element {
  return (
    <svg class="bird" width={size} height={size} viewBox="0 0 96 96" aria-hidden="true" focusable="false">
      <path class="bird-water" d="M14 86h30M52 86h26M26 91h40" />
      <path class="bird-leg" d="M43 60l2 25M51 60l-1 25M45 85l5 .5M50 85l5 .5" />
      <path class="bird-body" d="M9 57C17 42 33 34 49 36c4-1 6-5 7-10 1-7 6-11 12-11 6 0 9 4 9 9 0 3-2 5-5 7-4 3-4 6-5 11-2 13-12 21-27 20-9 0-15-2-19-5z" />
      <path class="bird-wing" d="M15 57c10-8 22-12 36-11-4 8-14 13-24 13-5 0-9-1-12-2z" />
      <path class="bird-bill" d="M76 22l19-5" />
      <circle class="bird-eye" cx="69" cy="22" r="1.7" />
    </svg>
  );
}

interface ButtonProps {
  icon: IconName;
  label: string;
  onClick: () => void;
  class?: string;
  expanded?: boolean;
  controls?: string;
  disabled?: boolean;
}

export function IconButton({ icon, label, onClick, class: extra, expanded, controls, disabled }: ButtonProps): JSX.Element {
  return (
    <button type="button" class={`icon-button ${extra ?? ''}`} aria-label={label} title={label} aria-expanded={expanded}
      aria-controls={controls} disabled={disabled} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}
