// The page's beginning.

import { mount } from 'svelte';

import '../chat/theme.css';
import './page.css';
import App from './App.svelte';

const target = document.getElementById('app');
if (target) mount(App, { target });
